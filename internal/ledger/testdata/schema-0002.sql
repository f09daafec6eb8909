-- Copyright The Sluice Authors.
-- SPDX-License-Identifier: Apache-2.0

-- Made by hack/dump-schema.sh; never changed afterwards.

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE FUNCTION public.audit_log_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION 'audit_log is append-only';
END $$;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE public.audit_log (
    id bigint NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    project_id bigint,
    subject text NOT NULL,
    payload jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE public.audit_log IS 'what happened, append-only (R-CORE-12)';

ALTER TABLE public.audit_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.bot_commits (
    repository_id bigint NOT NULL,
    sha text NOT NULL,
    kind text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT bot_commits_kind_check CHECK ((kind = ANY (ARRAY['revert'::text, 'deadline'::text, 'sync'::text, 'grader'::text])))
);

COMMENT ON TABLE public.bot_commits IS 'commits of the App or of a workflow, recorded before their ref moves (R-CORE-01)';

CREATE TABLE public.pass_targets (
    pass_id bigint NOT NULL,
    repository_id bigint NOT NULL,
    outcome text,
    reason text DEFAULT ''::text NOT NULL,
    message text DEFAULT ''::text NOT NULL,
    settled_at timestamp with time zone,
    CONSTRAINT pass_targets_check CHECK (((outcome IS NULL) = (settled_at IS NULL))),
    CONSTRAINT pass_targets_outcome_check CHECK ((outcome = ANY (ARRAY['Opened'::text, 'Updated'::text, 'UpToDate'::text, 'Held'::text, 'Skipped'::text, 'Failed'::text])))
);

COMMENT ON TABLE public.pass_targets IS 'the repositories of a pass; outcome is null while the turn is to come';

CREATE TABLE public.passes (
    id bigint NOT NULL,
    project_id bigint NOT NULL,
    request_id bigint NOT NULL,
    heads jsonb NOT NULL,
    source_heads jsonb NOT NULL,
    changed text[] NOT NULL,
    phase text NOT NULL,
    counts jsonb,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT passes_check CHECK (((phase = 'Done'::text) = (finished_at IS NOT NULL))),
    CONSTRAINT passes_counts CHECK (((phase = 'Done'::text) = (counts IS NOT NULL))),
    CONSTRAINT passes_phase_check CHECK ((phase = ANY (ARRAY['Pushing'::text, 'Done'::text])))
);

COMMENT ON TABLE public.passes IS 'one pass over a project''s repositories, all of which receive the same heads (R-SYNC-01)';

COMMENT ON COLUMN public.passes.source_heads IS 'the source''s shas the heads were made from: what the clearing rule compares (R-CLEAR-01)';

ALTER TABLE public.passes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.passes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.projects (
    id bigint NOT NULL,
    uid text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    app text NOT NULL,
    stage text NOT NULL,
    suspended boolean DEFAULT false NOT NULL,
    source text NOT NULL,
    branches text[] NOT NULL,
    history text NOT NULL,
    deadline_at timestamp with time zone,
    settings jsonb NOT NULL,
    source_repo_id bigint,
    source_full_name text,
    distribution_repo_id bigint,
    distribution_full_name text,
    distribution_heads jsonb,
    built_at timestamp with time zone,
    source_heads jsonb,
    source_ahead_sha text,
    source_pushed_at timestamp with time zone,
    source_ahead jsonb DEFAULT '{}'::jsonb NOT NULL,
    synced_at timestamp with time zone,
    sync_lease_token bigint DEFAULT 0 NOT NULL,
    sync_lease_holder text,
    sync_job_at timestamp with time zone,
    deadline_job_at timestamp with time zone,
    dispatch_job_at timestamp with time zone,
    deadline_applied_at timestamp with time zone,
    problem_class text,
    problem_reason text,
    problem_message text,
    problem_at timestamp with time zone,
    problem_retry_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    released_at timestamp with time zone,
    CONSTRAINT projects_ahead CHECK ((((source_ahead_sha IS NULL) = (source_pushed_at IS NULL)) AND ((source_ahead_sha IS NOT NULL) OR (source_ahead = '{}'::jsonb)))),
    CONSTRAINT projects_branches_check CHECK ((cardinality(branches) > 0)),
    CONSTRAINT projects_check CHECK (((sync_lease_holder IS NULL) = (sync_job_at IS NULL))),
    CONSTRAINT projects_check1 CHECK (((distribution_full_name IS NULL) = (built_at IS NULL))),
    CONSTRAINT projects_check2 CHECK (((built_at IS NULL) OR (distribution_repo_id IS NOT NULL))),
    CONSTRAINT projects_history_check CHECK ((history = ANY (ARRAY['Squash'::text, 'Whole'::text]))),
    CONSTRAINT projects_problem CHECK ((((problem_reason IS NULL) = (problem_at IS NULL)) AND ((problem_reason IS NULL) = (problem_class IS NULL)) AND ((problem_reason IS NOT NULL) OR (problem_retry_at IS NULL)))),
    CONSTRAINT projects_stage_check CHECK ((stage = ANY (ARRAY['Draft'::text, 'Published'::text, 'Archived'::text])))
);

COMMENT ON TABLE public.projects IS 'one row per ProjectSync: the spec last seen, and what was recorded';

COMMENT ON COLUMN public.projects.uid IS 'metadata.uid of the ProjectSync';

COMMENT ON COLUMN public.projects.settings IS 'the whole spec as the program reads it; the columns before it repeat what queries ask for';

COMMENT ON COLUMN public.projects.distribution_repo_id IS 'claimed before anything is pushed (R-DIST-06)';

COMMENT ON COLUMN public.projects.distribution_full_name IS 'written once built; null is unbuilt (R-DIST-01)';

COMMENT ON COLUMN public.projects.source_heads IS 'handed-out shas by branch; null is unknown (R-CLEAR-03)';

COMMENT ON COLUMN public.projects.source_ahead_sha IS 'head of the newest push that was not synced; null is not ahead (R-AHEAD-01)';

COMMENT ON COLUMN public.projects.source_ahead IS 'by branch: sha, pushedAt and commits past the handed-out sha';

COMMENT ON COLUMN public.projects.synced_at IS 'end of the last pass (R-SYNC-09)';

COMMENT ON COLUMN public.projects.sync_lease_token IS 'grows with each claim and fences every write of a pass (R-LEASE-05)';

COMMENT ON COLUMN public.projects.sync_lease_holder IS 'the process that holds the sync lease';

COMMENT ON COLUMN public.projects.sync_job_at IS 'the sync lease: last claim or renewal; null is free (R-LEASE-01)';

COMMENT ON COLUMN public.projects.problem_retry_at IS 'when the work is tried again; null is at once';

COMMENT ON COLUMN public.projects.released_at IS 'its ProjectSync is gone and its rows are kept; null while it lives';

ALTER TABLE public.projects ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.projects_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.pull_requests (
    repository_id bigint NOT NULL,
    branch text NOT NULL,
    number integer NOT NULL,
    state text NOT NULL,
    url text DEFAULT ''::text NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT pull_requests_number_check CHECK ((number > 0)),
    CONSTRAINT pull_requests_state_check CHECK ((state = ANY (ARRAY['Open'::text, 'Merged'::text, 'Closed'::text])))
);

COMMENT ON TABLE public.pull_requests IS 'the one pull request per repository and branch (R-PR-01)';

COMMENT ON COLUMN public.pull_requests.updated_at IS 'receipt of the newest fact about that number; an older one never undoes it (R-PR-07)';

CREATE TABLE public.push_receipts (
    github_repo_id bigint NOT NULL,
    head_sha text NOT NULL,
    branch text NOT NULL,
    received_at timestamp with time zone NOT NULL,
    is_bot boolean NOT NULL,
    forced boolean NOT NULL,
    commits integer NOT NULL,
    CONSTRAINT push_receipts_commits CHECK ((commits >= 0))
);

COMMENT ON TABLE public.push_receipts IS 'when a push to a downstream or distribution repository was received; the first one stands (R-HOOK-05)';

CREATE TABLE public.repositories (
    id bigint NOT NULL,
    project_id bigint,
    recipient text NOT NULL,
    members text[] DEFAULT '{}'::text[] NOT NULL,
    object_namespace text DEFAULT ''::text NOT NULL,
    object_name text DEFAULT ''::text NOT NULL,
    object_uid text,
    app text NOT NULL,
    wanted_name text NOT NULL,
    adopt boolean DEFAULT false NOT NULL,
    listed boolean DEFAULT true NOT NULL,
    excluded boolean DEFAULT false NOT NULL,
    test boolean DEFAULT false NOT NULL,
    suspended boolean DEFAULT false NOT NULL,
    github_repo_id bigint,
    node_id text DEFAULT ''::text NOT NULL,
    full_name text,
    default_branch text DEFAULT ''::text NOT NULL,
    provision_status text DEFAULT 'Pending'::text NOT NULL,
    provision_class text,
    provision_reason text,
    provision_message text,
    provision_failed_at timestamp with time zone,
    provision_retry_at timestamp with time zone,
    provision_claimed_at timestamp with time zone,
    adopted boolean DEFAULT false NOT NULL,
    accepted_at timestamp with time zone,
    deadline_at timestamp with time zone,
    deadline_applied_at timestamp with time zone,
    frozen_at timestamp with time zone,
    deadline_committed_at timestamp with time zone,
    locked_at timestamp with time zone,
    archived_at timestamp with time zone,
    staff_lock boolean,
    ruleset_id bigint,
    last_commit_sha text DEFAULT ''::text NOT NULL,
    last_commit_at timestamp with time zone,
    sync_outcome text,
    sync_reason text DEFAULT ''::text NOT NULL,
    sync_message text DEFAULT ''::text NOT NULL,
    sync_outcome_at timestamp with time zone,
    deleted_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    released_at timestamp with time zone,
    last_push_at timestamp with time zone,
    CONSTRAINT repositories_check CHECK (((provision_status <> 'OK'::text) OR ((github_repo_id IS NOT NULL) AND (full_name IS NOT NULL)))),
    CONSTRAINT repositories_check1 CHECK (((sync_outcome IS NULL) = (sync_outcome_at IS NULL))),
    CONSTRAINT repositories_object CHECK (((object_namespace = ''::text) = (object_name = ''::text))),
    CONSTRAINT repositories_owned CHECK (((project_id IS NOT NULL) OR (object_uid IS NOT NULL))),
    CONSTRAINT repositories_provision_problem CHECK (((provision_status = 'Failed'::text) OR (provision_retry_at IS NULL))),
    CONSTRAINT repositories_provision_status_check CHECK ((provision_status = ANY (ARRAY['Pending'::text, 'OK'::text, 'Failed'::text]))),
    CONSTRAINT repositories_sync_outcome_check CHECK ((sync_outcome = ANY (ARRAY['Opened'::text, 'Updated'::text, 'UpToDate'::text, 'Held'::text, 'Skipped'::text, 'Failed'::text])))
);

COMMENT ON TABLE public.repositories IS 'one row per downstream repository: a project''s entry, or a hand-made RepoReconcile';

COMMENT ON COLUMN public.repositories.wanted_name IS 'owner/name as listed or made from the template; empty when only its id is known';

COMMENT ON COLUMN public.repositories.listed IS 'false once the entry has left the list; the row stays';

COMMENT ON COLUMN public.repositories.github_repo_id IS 'GitHub''s id, its identity (R-CORE-08); recorded before anything is pushed (R-PROV-04)';

COMMENT ON COLUMN public.repositories.provision_claimed_at IS 'who provisions claimed it then; stale after 5 minutes (R-PROV-03)';

COMMENT ON COLUMN public.repositories.sync_outcome IS 'what its last turn in a pass came to (R-SYNC-11); null before any';

COMMENT ON COLUMN public.repositories.deleted_at IS 'gone from GitHub';

COMMENT ON COLUMN public.repositories.released_at IS 'no longer ours to touch; the row is kept';

COMMENT ON COLUMN public.repositories.last_push_at IS 'receipt of the push that last_commit_sha came with; an older receipt never undoes it';

ALTER TABLE public.repositories ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.repositories_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.schema_version (
    version integer NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    needs integer DEFAULT 1 NOT NULL
);

COMMENT ON TABLE public.schema_version IS 'migrations applied; the newest row is the schema''s version';

COMMENT ON COLUMN public.schema_version.needs IS 'the oldest schema version a release must know to work with this one';

CREATE TABLE public.sync_requests (
    id bigint NOT NULL,
    project_id bigint NOT NULL,
    source text NOT NULL,
    token text NOT NULL,
    requested_by text DEFAULT ''::text NOT NULL,
    answer text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    message text DEFAULT ''::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    answered_at timestamp with time zone NOT NULL,
    retry_at timestamp with time zone,
    CONSTRAINT sync_requests_answer_check CHECK ((answer = ANY (ARRAY['Accepted'::text, 'Waiting'::text, 'Refused'::text, 'Superseded'::text, 'Cancelled'::text, 'Recovered'::text, 'Built'::text]))),
    CONSTRAINT sync_requests_attempts CHECK ((attempts >= 0)),
    CONSTRAINT sync_requests_retry CHECK (((retry_at IS NULL) OR (answer = 'Waiting'::text))),
    CONSTRAINT sync_requests_source_check CHECK ((source = ANY (ARRAY['spec'::text, 'annotation'::text, 'push'::text, 'schedule'::text])))
);

COMMENT ON TABLE public.sync_requests IS 'tokens that asked for a sync, with their answers; the same value never runs twice';

ALTER TABLE public.sync_requests ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.sync_requests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.webhook_deliveries (
    app text NOT NULL,
    guid uuid NOT NULL,
    event text NOT NULL,
    action text DEFAULT ''::text NOT NULL,
    body bytea,
    received_at timestamp with time zone NOT NULL,
    processed_at timestamp with time zone,
    claimed_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    retry_at timestamp with time zone,
    parked_at timestamp with time zone,
    error text DEFAULT ''::text NOT NULL,
    CONSTRAINT webhook_deliveries_attempts CHECK ((attempts >= 0)),
    CONSTRAINT webhook_deliveries_end CHECK (((processed_at IS NULL) OR (parked_at IS NULL))),
    CONSTRAINT webhook_deliveries_error_check CHECK ((length(error) <= 1000))
);
ALTER TABLE ONLY public.webhook_deliveries ALTER COLUMN body SET COMPRESSION lz4;

COMMENT ON TABLE public.webhook_deliveries IS 'the inbox; a row outlives its body, to know the delivery again (R-HOOK-02)';

COMMENT ON COLUMN public.webhook_deliveries.body IS 'the bytes that were signed; null once purged';

COMMENT ON COLUMN public.webhook_deliveries.claimed_at IS 'a worker took it then; the claim expires';

COMMENT ON COLUMN public.webhook_deliveries.parked_at IS 'given up after five tries (R-HOOK-06)';

INSERT INTO public.audit_log OVERRIDING SYSTEM VALUE VALUES (1, 'system', 'project.synced', 1, 'project/uid-lab1', '{"opened": 1}', '2026-09-02 10:05:00+00');

INSERT INTO public.bot_commits VALUES (1, 'd1', 'sync', '2026-09-02 10:03:00+00');

INSERT INTO public.pass_targets VALUES (1, 1, 'Opened', '', '', '2026-09-02 10:04:00+00');

INSERT INTO public.passes OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, '{"main": "d1", "hints": "d2"}', '{"main": "s1", "hints": "s2"}', '{main}', 'Done', '{"held": 0, "failed": 0, "opened": 1, "skipped": 0, "updated": 0, "upToDate": 0}', '2026-09-02 10:01:00+00', '2026-09-02 10:05:00+00');

INSERT INTO public.projects OVERRIDING SYSTEM VALUE VALUES (1, 'uid-lab1', 'teaching', 'lab1', 'app', 'Published', false, 'acme/lab1-source', '{main,hints}', 'Squash', NULL, '{"App": "app", "UID": "uid-lab1", "Stage": "Published", "Object": {"name": "lab1", "namespace": "teaching"}, "Source": "acme/lab1-source", "History": "Squash", "Branches": ["main", "hints"], "Provision": {"permission": "Push", "visibility": "Private"}, "Suspended": false, "DeadlineAt": null, "IgnoreFile": "", "Concurrency": 4, "PullRequest": {"branchPrefix": "sync/"}, "Distribution": "acme/lab1-squashed", "Organization": "acme", "OverlayDirectory": "", "DistributionFixed": false}', 101, 'acme/lab1-source', 102, 'acme/lab1-squashed', '{"main": "d1", "hints": "d2"}', '2026-09-01 10:00:00+00', '{"main": "s1", "hints": "s2"}', 's3', '2026-09-03 10:00:00+00', '{"main": {"sha": "s3", "commits": 2, "pushedAt": "2026-09-03T10:00:00Z"}}', '2026-09-02 10:05:00+00', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-09-01 09:00:00+00', NULL);
INSERT INTO public.projects OVERRIDING SYSTEM VALUE VALUES (2, 'uid-lab2', 'teaching', 'lab2', 'app', 'Draft', false, 'acme/lab2-source', '{main}', 'Whole', NULL, '{"App": "app", "UID": "uid-lab2", "Stage": "Draft", "Object": {"name": "lab2", "namespace": "teaching"}, "Source": "acme/lab2-source", "History": "Whole", "Branches": ["main"], "Provision": null, "Suspended": false, "DeadlineAt": null, "IgnoreFile": "", "Concurrency": 4, "PullRequest": {"branchPrefix": "sync/"}, "Distribution": "acme/lab2-dist", "Organization": "acme", "OverlayDirectory": "", "DistributionFixed": false}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{}', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-09-01 09:00:00+00', NULL);

INSERT INTO public.pull_requests VALUES (1, 'main', 7, 'Open', 'https://github.example/acme/lab1-r01/pull/7', '2026-09-02 10:04:00+00');

INSERT INTO public.push_receipts VALUES (201, 'c1', 'main', '2026-09-01 12:00:01+00', false, false, 1);

INSERT INTO public.repositories OVERRIDING SYSTEM VALUE VALUES (1, 1, 'r01', '{octocat}', 'teaching', 'lab1-r01', NULL, 'app', 'acme/lab1-r01', false, true, false, false, false, 201, 'R_201', 'acme/lab1-r01', 'main', 'OK', NULL, NULL, NULL, NULL, NULL, NULL, false, '2026-09-01 11:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'c1', '2026-09-01 12:00:00+00', 'Opened', '', '', '2026-09-02 10:04:00+00', NULL, '2026-09-01 10:30:00+00', NULL, NULL);
INSERT INTO public.repositories OVERRIDING SYSTEM VALUE VALUES (2, 1, 'r02', '{}', 'teaching', 'lab1-r02', NULL, 'app', 'acme/lab1-r02', false, true, false, false, false, NULL, '', NULL, '', 'Failed', 'Blocked', 'RepositoryNameTaken', 'repository "acme/lab1-r02" already exists', '2026-09-01 11:00:00+00', NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, '', '', NULL, NULL, '2026-09-01 10:30:00+00', NULL, NULL);
INSERT INTO public.repositories OVERRIDING SYSTEM VALUE VALUES (3, NULL, 'r03', '{}', 'platform', 'svc', 'uid-svc', 'app', 'acme/svc', true, true, false, false, false, 203, 'R_203', 'acme/svc', 'trunk', 'OK', NULL, NULL, NULL, NULL, NULL, NULL, false, '2026-09-01 11:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, '', '', NULL, NULL, '2026-09-01 10:30:00+00', NULL, NULL);

INSERT INTO public.schema_version VALUES (1, '2026-12-01 02:43:49.485639+00', 1);
INSERT INTO public.schema_version VALUES (2, '2026-12-01 02:43:49.51778+00', 1);

INSERT INTO public.sync_requests OVERRIDING SYSTEM VALUE VALUES (1, 1, 'spec', 'week-1', 'ops', 'Accepted', '', '', 0, '2026-09-02 10:00:00+00', '2026-09-02 10:01:00+00', NULL);
INSERT INTO public.sync_requests OVERRIDING SYSTEM VALUE VALUES (2, 1, 'annotation', 'now', '', 'Waiting', 'AppNotInstalled', '', 0, '2026-09-03 11:00:00+00', '2026-09-03 11:00:00+00', '2026-09-03 11:01:00+00');

INSERT INTO public.webhook_deliveries VALUES ('app', '11111111-1111-4111-8111-111111111111', 'push', '', NULL, '2026-09-01 12:00:01+00', '2026-09-01 12:00:02+00', NULL, 0, NULL, NULL, '');
INSERT INTO public.webhook_deliveries VALUES ('app', '22222222-2222-4222-8222-222222222222', 'push', '', '\x7b7d', '2026-09-03 10:00:00+00', NULL, NULL, 0, NULL, NULL, '');
INSERT INTO public.webhook_deliveries VALUES ('app', '33333333-3333-4333-8333-333333333333', 'pull_request', 'closed', '\x7b7d', '2026-09-03 10:00:01+00', NULL, NULL, 5, NULL, '2026-09-03 10:10:00+00', 'could not be read');

SELECT pg_catalog.setval('public.audit_log_id_seq', 1, true);

SELECT pg_catalog.setval('public.passes_id_seq', 1, true);

SELECT pg_catalog.setval('public.projects_id_seq', 2, true);

SELECT pg_catalog.setval('public.repositories_id_seq', 3, true);

SELECT pg_catalog.setval('public.sync_requests_id_seq', 2, true);

ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.bot_commits
    ADD CONSTRAINT bot_commits_pkey PRIMARY KEY (repository_id, sha);

ALTER TABLE ONLY public.pass_targets
    ADD CONSTRAINT pass_targets_pkey PRIMARY KEY (pass_id, repository_id);

ALTER TABLE ONLY public.passes
    ADD CONSTRAINT passes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.passes
    ADD CONSTRAINT passes_request_id_key UNIQUE (request_id);

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_uid_key UNIQUE (uid);

ALTER TABLE ONLY public.pull_requests
    ADD CONSTRAINT pull_requests_pkey PRIMARY KEY (repository_id, branch);

ALTER TABLE ONLY public.push_receipts
    ADD CONSTRAINT push_receipts_pkey PRIMARY KEY (github_repo_id, head_sha);

ALTER TABLE ONLY public.repositories
    ADD CONSTRAINT repositories_object_uid_key UNIQUE (object_uid);

ALTER TABLE ONLY public.repositories
    ADD CONSTRAINT repositories_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.sync_requests
    ADD CONSTRAINT sync_requests_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.sync_requests
    ADD CONSTRAINT sync_requests_project_id_source_token_key UNIQUE (project_id, source, token);

ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (app, guid);

CREATE INDEX audit_log_project ON public.audit_log USING btree (project_id);

CREATE INDEX audit_log_subject ON public.audit_log USING btree (subject);

CREATE INDEX audit_log_time ON public.audit_log USING btree (created_at);

CREATE INDEX pass_targets_repository ON public.pass_targets USING btree (repository_id);

CREATE UNIQUE INDEX passes_active ON public.passes USING btree (project_id) WHERE (finished_at IS NULL);

CREATE INDEX passes_project ON public.passes USING btree (project_id);

CREATE UNIQUE INDEX projects_distribution ON public.projects USING btree (distribution_repo_id) WHERE ((distribution_repo_id IS NOT NULL) AND (released_at IS NULL));

CREATE INDEX projects_distribution_any ON public.projects USING btree (distribution_repo_id) WHERE (distribution_repo_id IS NOT NULL);

CREATE INDEX projects_source ON public.projects USING btree (source_repo_id) WHERE (released_at IS NULL);

CREATE UNIQUE INDEX repositories_github ON public.repositories USING btree (github_repo_id) WHERE ((github_repo_id IS NOT NULL) AND (released_at IS NULL));

CREATE INDEX repositories_github_any ON public.repositories USING btree (github_repo_id) WHERE (github_repo_id IS NOT NULL);

CREATE UNIQUE INDEX repositories_one_object ON public.repositories USING btree (object_namespace, object_name) WHERE ((object_name <> ''::text) AND (released_at IS NULL));

CREATE INDEX repositories_project ON public.repositories USING btree (project_id);

CREATE UNIQUE INDEX repositories_recipient ON public.repositories USING btree (project_id, recipient) WHERE ((object_uid IS NULL) AND (released_at IS NULL));

CREATE UNIQUE INDEX sync_requests_waiting ON public.sync_requests USING btree (project_id) WHERE (answer = 'Waiting'::text);

CREATE INDEX webhook_deliveries_open ON public.webhook_deliveries USING btree (received_at) WHERE ((processed_at IS NULL) AND (parked_at IS NULL));

CREATE TRIGGER audit_log_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.audit_log FOR EACH STATEMENT EXECUTE FUNCTION public.audit_log_append_only();

ALTER TABLE ONLY public.bot_commits
    ADD CONSTRAINT bot_commits_repository_id_fkey FOREIGN KEY (repository_id) REFERENCES public.repositories(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.pass_targets
    ADD CONSTRAINT pass_targets_pass_id_fkey FOREIGN KEY (pass_id) REFERENCES public.passes(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.pass_targets
    ADD CONSTRAINT pass_targets_repository_id_fkey FOREIGN KEY (repository_id) REFERENCES public.repositories(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.passes
    ADD CONSTRAINT passes_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.passes
    ADD CONSTRAINT passes_request_id_fkey FOREIGN KEY (request_id) REFERENCES public.sync_requests(id);

ALTER TABLE ONLY public.pull_requests
    ADD CONSTRAINT pull_requests_repository_id_fkey FOREIGN KEY (repository_id) REFERENCES public.repositories(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.repositories
    ADD CONSTRAINT repositories_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.sync_requests
    ADD CONSTRAINT sync_requests_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;
