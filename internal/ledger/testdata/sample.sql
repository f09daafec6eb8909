-- Copyright The Sluice Authors.
-- SPDX-License-Identifier: Apache-2.0

-- The rows of every dump: a built project with a finished pass, a draft, a
-- provisioned, a failed and a hand-made repository.
INSERT INTO projects (uid, namespace, name, app, stage, source, branches, history, settings,
  source_repo_id, source_full_name, distribution_repo_id, distribution_full_name, distribution_heads, built_at,
  source_heads, source_ahead_sha, source_pushed_at, source_ahead, synced_at, created_at)
VALUES
  ('uid-lab1', 'teaching', 'lab1', 'app', 'Published', 'acme/lab1-source', '{main,hints}', 'Squash',
   '{"UID": "uid-lab1", "Object": {"namespace": "teaching", "name": "lab1"}, "App": "app", "Stage": "Published", "Suspended": false, "Source": "acme/lab1-source", "Branches": ["main", "hints"], "History": "Squash", "OverlayDirectory": "", "IgnoreFile": "", "Distribution": "acme/lab1-squashed", "DistributionFixed": false, "Organization": "acme", "Provision": {"visibility": "Private", "permission": "Push"}, "DeadlineAt": null, "PullRequest": {"branchPrefix": "sync/"}, "Concurrency": 4}',
   101, 'acme/lab1-source', 102, 'acme/lab1-squashed', '{"main": "d1", "hints": "d2"}', '2026-09-01T10:00:00Z',
   '{"main": "s1", "hints": "s2"}', 's3', '2026-09-03T10:00:00Z',
   '{"main": {"sha": "s3", "pushedAt": "2026-09-03T10:00:00Z", "commits": 2}}', '2026-09-02T10:05:00Z', '2026-09-01T09:00:00Z'),
  ('uid-lab2', 'teaching', 'lab2', 'app', 'Draft', 'acme/lab2-source', '{main}', 'Whole',
   '{"UID": "uid-lab2", "Object": {"namespace": "teaching", "name": "lab2"}, "App": "app", "Stage": "Draft", "Suspended": false, "Source": "acme/lab2-source", "Branches": ["main"], "History": "Whole", "OverlayDirectory": "", "IgnoreFile": "", "Distribution": "acme/lab2-dist", "DistributionFixed": false, "Organization": "acme", "Provision": null, "DeadlineAt": null, "PullRequest": {"branchPrefix": "sync/"}, "Concurrency": 4}',
   NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{}', NULL, '2026-09-01T09:00:00Z');

INSERT INTO repositories (project_id, recipient, members, object_namespace, object_name, object_uid, app, wanted_name, adopt,
  github_repo_id, node_id, full_name, default_branch, provision_status, provision_class, provision_reason, provision_message, provision_failed_at,
  accepted_at, last_commit_sha, last_commit_at, sync_outcome, sync_outcome_at, created_at)
VALUES
  (1, 'r01', '{octocat}', 'teaching', 'lab1-r01', NULL, 'app', 'acme/lab1-r01', false,
   201, 'R_201', 'acme/lab1-r01', 'main', 'OK', NULL, NULL, NULL, NULL,
   '2026-09-01T11:00:00Z', 'c1', '2026-09-01T12:00:00Z', 'Opened', '2026-09-02T10:04:00Z', '2026-09-01T10:30:00Z'),
  (1, 'r02', '{}', 'teaching', 'lab1-r02', NULL, 'app', 'acme/lab1-r02', false,
   NULL, '', NULL, '', 'Failed', 'Blocked', 'RepositoryNameTaken', 'repository "acme/lab1-r02" already exists', '2026-09-01T11:00:00Z',
   NULL, '', NULL, NULL, NULL, '2026-09-01T10:30:00Z'),
  (NULL, 'r03', '{}', 'platform', 'svc', 'uid-svc', 'app', 'acme/svc', true,
   203, 'R_203', 'acme/svc', 'trunk', 'OK', NULL, NULL, NULL, NULL,
   '2026-09-01T11:00:00Z', '', NULL, NULL, NULL, '2026-09-01T10:30:00Z');

INSERT INTO pull_requests (repository_id, branch, number, state, url, updated_at)
VALUES (1, 'main', 7, 'Open', 'https://github.example/acme/lab1-r01/pull/7', '2026-09-02T10:04:00Z');
INSERT INTO bot_commits (repository_id, sha, kind, created_at) VALUES (1, 'd1', 'sync', '2026-09-02T10:03:00Z');
INSERT INTO push_receipts (github_repo_id, head_sha, branch, received_at, is_bot, forced, commits)
VALUES (201, 'c1', 'main', '2026-09-01T12:00:01Z', false, false, 1);
INSERT INTO webhook_deliveries (app, guid, event, action, body, received_at, processed_at, attempts, parked_at, error)
VALUES
  ('app', '11111111-1111-4111-8111-111111111111', 'push', '', NULL, '2026-09-01T12:00:01Z', '2026-09-01T12:00:02Z', 0, NULL, ''),
  ('app', '22222222-2222-4222-8222-222222222222', 'push', '', '\x7b7d', '2026-09-03T10:00:00Z', NULL, 0, NULL, ''),
  ('app', '33333333-3333-4333-8333-333333333333', 'pull_request', 'closed', '\x7b7d', '2026-09-03T10:00:01Z', NULL, 5, '2026-09-03T10:10:00Z', 'could not be read');
INSERT INTO sync_requests (project_id, source, token, requested_by, answer, reason, created_at, answered_at, retry_at)
VALUES
  (1, 'spec', 'week-1', 'ops', 'Accepted', '', '2026-09-02T10:00:00Z', '2026-09-02T10:01:00Z', NULL),
  (1, 'annotation', 'now', '', 'Waiting', 'AppNotInstalled', '2026-09-03T11:00:00Z', '2026-09-03T11:00:00Z', '2026-09-03T11:01:00Z');
INSERT INTO passes (project_id, request_id, heads, source_heads, changed, phase, counts, started_at, finished_at)
VALUES (1, 1, '{"main": "d1", "hints": "d2"}', '{"main": "s1", "hints": "s2"}', '{main}', 'Done',
  '{"opened": 1, "updated": 0, "upToDate": 0, "held": 0, "skipped": 0, "failed": 0}', '2026-09-02T10:01:00Z', '2026-09-02T10:05:00Z');
INSERT INTO pass_targets (pass_id, repository_id, outcome, settled_at) VALUES (1, 1, 'Opened', '2026-09-02T10:04:00Z');
INSERT INTO audit_log (actor, action, project_id, subject, payload, created_at)
VALUES ('system', 'project.synced', 1, 'project/uid-lab1', '{"opened": 1}', '2026-09-02T10:05:00Z');
