-- Copyright The Sluice Authors.
-- SPDX-License-Identifier: Apache-2.0

-- A release works with a newer schema unless a later migration takes away what
-- it uses. Such a migration ends with
--   UPDATE schema_version SET needs = <version> WHERE version = <its own>;
-- and releases that know less than `needs` stay unready.
ALTER TABLE schema_version ADD COLUMN needs integer NOT NULL DEFAULT 1;
COMMENT ON TABLE schema_version IS 'migrations applied; the newest row is the schema''s version';
COMMENT ON COLUMN schema_version.needs IS 'the oldest schema version a release must know to work with this one';

-- When the person's push was received: orders pushes, which Git's dates never
-- do (R-CORE-04).
ALTER TABLE repositories ADD COLUMN last_push_at timestamptz;
COMMENT ON COLUMN repositories.last_push_at IS 'receipt of the push that last_commit_sha came with; an older receipt never undoes it';

-- Bodies are text that compresses well; lz4 where this Postgres has it.
DO $$
BEGIN
  EXECUTE 'ALTER TABLE webhook_deliveries ALTER COLUMN body SET COMPRESSION lz4';
EXCEPTION WHEN feature_not_supported OR invalid_parameter_value OR syntax_error THEN
  RAISE DEBUG 'no lz4 here: bodies stay compressed with pglz';
END $$;

-- Invariants.
ALTER TABLE projects
  ADD CONSTRAINT projects_ahead CHECK ((source_ahead_sha IS NULL) = (source_pushed_at IS NULL)
    AND (source_ahead_sha IS NOT NULL OR source_ahead = '{}')),
  ADD CONSTRAINT projects_problem CHECK ((problem_reason IS NULL) = (problem_at IS NULL)
    AND (problem_reason IS NULL) = (problem_class IS NULL)
    AND (problem_reason IS NOT NULL OR problem_retry_at IS NULL));
ALTER TABLE repositories
  ADD CONSTRAINT repositories_provision_problem CHECK ((provision_status = 'Failed') OR provision_retry_at IS NULL),
  ADD CONSTRAINT repositories_object CHECK ((object_namespace = '') = (object_name = '')),
  ADD CONSTRAINT repositories_owned CHECK (project_id IS NOT NULL OR object_uid IS NOT NULL);
ALTER TABLE sync_requests
  ADD CONSTRAINT sync_requests_retry CHECK (retry_at IS NULL OR answer = 'Waiting'),
  ADD CONSTRAINT sync_requests_attempts CHECK (attempts >= 0);
ALTER TABLE passes
  ADD CONSTRAINT passes_counts CHECK ((phase = 'Done') = (counts IS NOT NULL));
ALTER TABLE push_receipts
  ADD CONSTRAINT push_receipts_commits CHECK (commits >= 0);
ALTER TABLE webhook_deliveries
  ADD CONSTRAINT webhook_deliveries_end CHECK (processed_at IS NULL OR parked_at IS NULL),
  ADD CONSTRAINT webhook_deliveries_attempts CHECK (attempts >= 0);

-- One RepoReconcile shows one row.
CREATE UNIQUE INDEX repositories_one_object ON repositories (object_namespace, object_name) WHERE object_name <> '' AND released_at IS NULL;
DROP INDEX repositories_object;
-- Receipts ask for a repository by its id on GitHub, released rows included;
-- the rest serves foreign keys.
CREATE INDEX repositories_github_any ON repositories (github_repo_id) WHERE github_repo_id IS NOT NULL;
CREATE INDEX projects_distribution_any ON projects (distribution_repo_id) WHERE distribution_repo_id IS NOT NULL;
CREATE INDEX repositories_project ON repositories (project_id);
CREATE INDEX pass_targets_repository ON pass_targets (repository_id);
CREATE INDEX passes_project ON passes (project_id);

COMMENT ON TABLE projects IS 'one row per ProjectSync: the spec last seen, and what was recorded';
COMMENT ON COLUMN projects.uid IS 'metadata.uid of the ProjectSync';
COMMENT ON COLUMN projects.settings IS 'the whole spec as the program reads it; the columns before it repeat what queries ask for';
COMMENT ON COLUMN projects.distribution_repo_id IS 'claimed before anything is pushed (R-DIST-06)';
COMMENT ON COLUMN projects.distribution_full_name IS 'written once built; null is unbuilt (R-DIST-01)';
COMMENT ON COLUMN projects.source_ahead_sha IS 'head of the newest push that was not synced; null is not ahead (R-AHEAD-01)';
COMMENT ON COLUMN projects.source_ahead IS 'by branch: sha, pushedAt and commits past the handed-out sha';
COMMENT ON COLUMN projects.synced_at IS 'end of the last pass (R-SYNC-09)';
COMMENT ON COLUMN projects.sync_lease_holder IS 'the process that holds the sync lease';
COMMENT ON COLUMN projects.problem_retry_at IS 'when the work is tried again; null is at once';
COMMENT ON COLUMN projects.released_at IS 'its ProjectSync is gone and its rows are kept; null while it lives';
COMMENT ON TABLE repositories IS 'one row per downstream repository: a project''s entry, or a hand-made RepoReconcile';
COMMENT ON COLUMN repositories.wanted_name IS 'owner/name as listed or made from the template; empty when only its id is known';
COMMENT ON COLUMN repositories.github_repo_id IS 'GitHub''s id, its identity (R-CORE-08); recorded before anything is pushed (R-PROV-04)';
COMMENT ON COLUMN repositories.listed IS 'false once the entry has left the list; the row stays';
COMMENT ON COLUMN repositories.provision_claimed_at IS 'who provisions claimed it then; stale after 5 minutes (R-PROV-03)';
COMMENT ON COLUMN repositories.deleted_at IS 'gone from GitHub';
COMMENT ON COLUMN repositories.released_at IS 'no longer ours to touch; the row is kept';
COMMENT ON COLUMN repositories.sync_outcome IS 'what its last turn in a pass came to (R-SYNC-11); null before any';
COMMENT ON TABLE pull_requests IS 'the one pull request per repository and branch (R-PR-01)';
COMMENT ON COLUMN pull_requests.updated_at IS 'receipt of the newest fact about that number; an older one never undoes it (R-PR-07)';
COMMENT ON TABLE bot_commits IS 'commits of the App or of a workflow, recorded before their ref moves (R-CORE-01)';
COMMENT ON TABLE push_receipts IS 'when a push to a downstream or distribution repository was received; the first one stands (R-HOOK-05)';
COMMENT ON TABLE webhook_deliveries IS 'the inbox; a row outlives its body, to know the delivery again (R-HOOK-02)';
COMMENT ON COLUMN webhook_deliveries.body IS 'the bytes that were signed; null once purged';
COMMENT ON COLUMN webhook_deliveries.claimed_at IS 'a worker took it then; the claim expires';
COMMENT ON COLUMN webhook_deliveries.parked_at IS 'given up after five tries (R-HOOK-06)';
COMMENT ON TABLE sync_requests IS 'tokens that asked for a sync, with their answers; the same value never runs twice';
COMMENT ON TABLE passes IS 'one pass over a project''s repositories, all of which receive the same heads (R-SYNC-01)';
COMMENT ON COLUMN passes.source_heads IS 'the source''s shas the heads were made from: what the clearing rule compares (R-CLEAR-01)';
COMMENT ON TABLE pass_targets IS 'the repositories of a pass; outcome is null while the turn is to come';
COMMENT ON TABLE audit_log IS 'what happened, append-only (R-CORE-12)';
