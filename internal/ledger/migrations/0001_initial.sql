-- Copyright The Sluice Authors.
-- SPDX-License-Identifier: Apache-2.0

-- One row per ProjectSync. The spec last seen and what was recorded are
-- separate columns (R-CORE-06). No column can hold a secret (R-CORE-10).
CREATE TABLE projects (
  id                    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid                   text NOT NULL UNIQUE,
  namespace             text NOT NULL,
  name                  text NOT NULL,
  app                   text NOT NULL,
  stage                 text NOT NULL CHECK (stage IN ('Draft', 'Published', 'Archived')),
  suspended             boolean NOT NULL DEFAULT false,
  source                text NOT NULL,
  branches              text[] NOT NULL CHECK (cardinality(branches) > 0),
  history               text NOT NULL CHECK (history IN ('Squash', 'Whole')),
  deadline_at           timestamptz,
  -- The rest of the spec, read only by the program (domain.ProjectSpec).
  settings              jsonb NOT NULL,
  source_repo_id        bigint,
  source_full_name      text,
  distribution_repo_id  bigint,
  distribution_full_name text,
  distribution_heads    jsonb,
  built_at              timestamptz,
  source_heads          jsonb,
  source_ahead_sha      text,
  source_pushed_at      timestamptz,
  source_ahead          jsonb NOT NULL DEFAULT '{}',
  synced_at             timestamptz,
  sync_lease_token      bigint NOT NULL DEFAULT 0,
  sync_lease_holder     text,
  sync_job_at           timestamptz,
  deadline_job_at       timestamptz,
  dispatch_job_at       timestamptz,
  deadline_applied_at   timestamptz,
  problem_class         text,
  problem_reason        text,
  problem_message       text,
  problem_at            timestamptz,
  problem_retry_at      timestamptz,
  created_at            timestamptz NOT NULL,
  released_at           timestamptz,
  CHECK ((sync_lease_holder IS NULL) = (sync_job_at IS NULL)),
  CHECK ((distribution_full_name IS NULL) = (built_at IS NULL)),
  CHECK (built_at IS NULL OR distribution_repo_id IS NOT NULL)
);
-- A distribution belongs to one project (R-DIST-06).
CREATE UNIQUE INDEX projects_distribution ON projects (distribution_repo_id) WHERE distribution_repo_id IS NOT NULL AND released_at IS NULL;
CREATE INDEX projects_source ON projects (source_repo_id) WHERE released_at IS NULL;
COMMENT ON COLUMN projects.sync_job_at IS 'the sync lease: last claim or renewal; null is free (R-LEASE-01)';
COMMENT ON COLUMN projects.sync_lease_token IS 'grows with each claim and fences every write of a pass (R-LEASE-05)';
COMMENT ON COLUMN projects.source_heads IS 'handed-out shas by branch; null is unknown (R-CLEAR-03)';

CREATE TABLE repositories (
  id                    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  project_id            bigint REFERENCES projects ON DELETE CASCADE,
  recipient             text NOT NULL,
  members               text[] NOT NULL DEFAULT '{}',
  object_namespace      text NOT NULL DEFAULT '',
  object_name           text NOT NULL DEFAULT '',
  -- Set for a hand-made RepoReconcile; null for a project's own entry.
  object_uid            text UNIQUE,
  app                   text NOT NULL,
  wanted_name           text NOT NULL,
  adopt                 boolean NOT NULL DEFAULT false,
  listed                boolean NOT NULL DEFAULT true,
  excluded              boolean NOT NULL DEFAULT false,
  test                  boolean NOT NULL DEFAULT false,
  suspended             boolean NOT NULL DEFAULT false,
  github_repo_id        bigint,
  node_id               text NOT NULL DEFAULT '',
  full_name             text,
  default_branch        text NOT NULL DEFAULT '',
  provision_status      text NOT NULL DEFAULT 'Pending' CHECK (provision_status IN ('Pending', 'OK', 'Failed')),
  provision_class       text,
  provision_reason      text,
  provision_message     text,
  provision_failed_at   timestamptz,
  provision_retry_at    timestamptz,
  provision_claimed_at  timestamptz,
  adopted               boolean NOT NULL DEFAULT false,
  accepted_at           timestamptz,
  deadline_at           timestamptz,
  deadline_applied_at   timestamptz,
  frozen_at             timestamptz,
  deadline_committed_at timestamptz,
  locked_at             timestamptz,
  archived_at           timestamptz,
  staff_lock            boolean,
  ruleset_id            bigint,
  last_commit_sha       text NOT NULL DEFAULT '',
  last_commit_at        timestamptz,
  sync_outcome          text CHECK (sync_outcome IN ('Opened', 'Updated', 'UpToDate', 'Held', 'Skipped', 'Failed')),
  sync_reason           text NOT NULL DEFAULT '',
  sync_message          text NOT NULL DEFAULT '',
  sync_outcome_at       timestamptz,
  deleted_at            timestamptz,
  created_at            timestamptz NOT NULL,
  released_at           timestamptz,
  CHECK (provision_status <> 'OK' OR (github_repo_id IS NOT NULL AND full_name IS NOT NULL)),
  CHECK ((sync_outcome IS NULL) = (sync_outcome_at IS NULL))
);
-- One repository has one row, whoever claims it first.
CREATE UNIQUE INDEX repositories_github ON repositories (github_repo_id) WHERE github_repo_id IS NOT NULL AND released_at IS NULL;
CREATE UNIQUE INDEX repositories_recipient ON repositories (project_id, recipient) WHERE object_uid IS NULL AND released_at IS NULL;
CREATE INDEX repositories_object ON repositories (object_namespace, object_name) WHERE object_name <> '';

-- At most one pull request per repository and branch (R-PR-01).
CREATE TABLE pull_requests (
  repository_id bigint NOT NULL REFERENCES repositories ON DELETE CASCADE,
  branch        text NOT NULL,
  number        integer NOT NULL CHECK (number > 0),
  state         text NOT NULL CHECK (state IN ('Open', 'Merged', 'Closed')),
  url           text NOT NULL DEFAULT '',
  updated_at    timestamptz NOT NULL,
  PRIMARY KEY (repository_id, branch)
);

-- Commits of the App or of a workflow; the first kind stands.
CREATE TABLE bot_commits (
  repository_id bigint NOT NULL REFERENCES repositories ON DELETE CASCADE,
  sha           text NOT NULL,
  kind          text NOT NULL CHECK (kind IN ('revert', 'deadline', 'sync', 'grader')),
  created_at    timestamptz NOT NULL,
  PRIMARY KEY (repository_id, sha)
);

-- A receipt is a fact about a GitHub repository: no reference to projects.
CREATE TABLE push_receipts (
  github_repo_id bigint NOT NULL,
  head_sha       text NOT NULL,
  branch         text NOT NULL,
  received_at    timestamptz NOT NULL,
  is_bot         boolean NOT NULL,
  forced         boolean NOT NULL,
  commits        integer NOT NULL,
  PRIMARY KEY (github_repo_id, head_sha)
);

-- The inbox. The row stays for deduplication when the body is purged.
CREATE TABLE webhook_deliveries (
  app          text NOT NULL,
  guid         uuid NOT NULL,
  event        text NOT NULL,
  action       text NOT NULL DEFAULT '',
  body         bytea,
  received_at  timestamptz NOT NULL,
  processed_at timestamptz,
  claimed_at   timestamptz,
  attempts     integer NOT NULL DEFAULT 0,
  retry_at     timestamptz,
  parked_at    timestamptz,
  error        text NOT NULL DEFAULT '' CHECK (length(error) <= 1000),
  PRIMARY KEY (app, guid)
);
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (received_at) WHERE processed_at IS NULL AND parked_at IS NULL;

-- Tokens are a set: the same value never runs twice.
CREATE TABLE sync_requests (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  project_id   bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
  source       text NOT NULL CHECK (source IN ('spec', 'annotation', 'push', 'schedule')),
  token        text NOT NULL,
  requested_by text NOT NULL DEFAULT '',
  answer       text NOT NULL CHECK (answer IN ('Accepted', 'Waiting', 'Refused', 'Superseded', 'Cancelled', 'Recovered', 'Built')),
  reason       text NOT NULL DEFAULT '',
  message      text NOT NULL DEFAULT '',
  attempts     integer NOT NULL DEFAULT 0,
  created_at   timestamptz NOT NULL,
  answered_at  timestamptz NOT NULL,
  retry_at     timestamptz,
  UNIQUE (project_id, source, token)
);
-- One waiting token at most.
CREATE UNIQUE INDEX sync_requests_waiting ON sync_requests (project_id) WHERE answer = 'Waiting';

CREATE TABLE passes (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  project_id   bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
  request_id   bigint NOT NULL UNIQUE REFERENCES sync_requests,
  heads        jsonb NOT NULL,
  source_heads jsonb NOT NULL,
  changed      text[] NOT NULL,
  phase        text NOT NULL CHECK (phase IN ('Pushing', 'Done')),
  counts       jsonb,
  started_at   timestamptz NOT NULL,
  finished_at  timestamptz,
  CHECK ((phase = 'Done') = (finished_at IS NOT NULL))
);
-- One pass at a time.
CREATE UNIQUE INDEX passes_active ON passes (project_id) WHERE finished_at IS NULL;

CREATE TABLE pass_targets (
  pass_id       bigint NOT NULL REFERENCES passes ON DELETE CASCADE,
  repository_id bigint NOT NULL REFERENCES repositories ON DELETE CASCADE,
  outcome       text CHECK (outcome IN ('Opened', 'Updated', 'UpToDate', 'Held', 'Skipped', 'Failed')),
  reason        text NOT NULL DEFAULT '',
  message       text NOT NULL DEFAULT '',
  settled_at    timestamptz,
  PRIMARY KEY (pass_id, repository_id),
  CHECK ((outcome IS NULL) = (settled_at IS NULL))
);

CREATE TABLE audit_log (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  actor      text NOT NULL,
  action     text NOT NULL,
  -- No reference: entries outlive their project.
  project_id bigint,
  subject    text NOT NULL,
  payload    jsonb NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX audit_log_time ON audit_log (created_at);
CREATE INDEX audit_log_subject ON audit_log (subject);
CREATE INDEX audit_log_project ON audit_log (project_id);

-- The audit log is append-only (R-CORE-12).
CREATE FUNCTION audit_log_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'audit_log is append-only';
END $$;
CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION audit_log_append_only();
