// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

const (
	// claimStale is how old a provisioning claim is when it no longer counts.
	claimStale = 5 * time.Minute
	// maxProvisionMessage bounds a stored message (R-PROV-06), in characters.
	maxProvisionMessage = 500
)

// ClaimProvisioning claims a repository's provisioning: won by one caller when
// it failed, or is pending without a claim or with a stale one (R-PROV-03). The
// last failure stays readable until the next end.
func (l *Ledger) ClaimProvisioning(ctx context.Context, id int64, now time.Time) (bool, error) {
	written, err := l.exec(ctx, `
		UPDATE repositories SET provision_status = 'Pending', provision_claimed_at = $2, provision_retry_at = NULL
		WHERE id = $1 AND released_at IS NULL AND deleted_at IS NULL AND (provision_status = 'Failed'
			OR (provision_status = 'Pending' AND (provision_claimed_at IS NULL OR provision_claimed_at < $3)))`, id, now, now.Add(-claimStale))
	return written > 0, err
}

// RecordRepositoryID writes a repository's identity before anything is pushed
// to it (R-PROV-04). Fault RepositoryClaimed: another row has it, or it is a
// distribution, or its own project's source. Fault RepositoryChanged: the row
// learnt another id before. A row that is gone or released answers ErrNotFound.
func (l *Ledger) RecordRepositoryID(ctx context.Context, id int64, repo domain.RepositoryRef, nodeID string) error {
	err := l.tx(ctx, func(ctx context.Context, q db) error {
		r, err := scanRepository(q.QueryRow(ctx, `SELECT `+repositoryColumns+` FROM repositories r WHERE r.id = $1 AND r.released_at IS NULL`, id))
		if err != nil {
			return err
		}
		if r.Repo == repo && r.NodeID == nodeID {
			return nil
		}
		return claimRepository(ctx, q, r, repo, nodeID)
	})
	return claimedElsewhere(err, repo)
}

// claimRepository gives a row its repository.
func claimRepository(ctx context.Context, q db, r domain.Repository, repo domain.RepositoryRef, nodeID string) error {
	if err := lockRepository(ctx, q, repo.ID); err != nil {
		return err
	}
	taken, err := scalar[bool](q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM projects WHERE released_at IS NULL
		AND (distribution_repo_id = $1 OR (source_repo_id = $1 AND id = $2)))`, repo.ID, r.ProjectID))
	if err != nil {
		return err
	}
	if taken {
		return fault.New(fault.Blocked, fault.ReasonRepositoryClaimed,
			"repository %q is the source or a distribution of a project and cannot receive one: correct the list", repo.FullName)
	}
	written, err := write(ctx, q, `UPDATE repositories SET github_repo_id = $2, full_name = nullif($3, ''), node_id = $4
		WHERE id = $1 AND (github_repo_id IS NULL OR github_repo_id = $2)`, r.ID, repo.ID, repo.FullName, nodeID)
	if err == nil && written == 0 {
		return fault.New(fault.Terminal, fault.ReasonRepositoryChanged,
			"%q now is another repository (id %d) than the one known so far (id %d); nothing is written to it: restore the name", repo.FullName, repo.ID, r.Repo.ID)
	}
	return err
}

// claimedElsewhere makes the violation of one row per repository a fault.
func claimedElsewhere(err error, repo domain.RepositoryRef) error {
	if !violates(err, "repositories_github") {
		return err
	}
	return fault.Wrap(err, fault.Blocked, fault.ReasonRepositoryClaimed,
		"repository %q already belongs to another entry or project: list it once only", repo.FullName)
}

// FinishProvisioning marks a repository provisioned and audits it, once.
func (l *Ledger) FinishProvisioning(ctx context.Context, id int64, defaultBranch string, adopted bool, now time.Time) error {
	return l.tx(ctx, func(ctx context.Context, q db) error {
		var project int64
		var name string
		err := q.QueryRow(ctx, `
			UPDATE repositories SET provision_status = 'OK', default_branch = $2, adopted = $3, accepted_at = coalesce(accepted_at, $4), provision_claimed_at = NULL,
				provision_class = NULL, provision_reason = NULL, provision_message = NULL, provision_failed_at = NULL, provision_retry_at = NULL
			WHERE id = $1 AND provision_status <> 'OK' AND released_at IS NULL RETURNING coalesce(project_id, 0), full_name`, id, defaultBranch, adopted, now).Scan(&project, &name)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // before, or released meanwhile
		}
		if err != nil {
			return err
		}
		return audit(ctx, q, domain.AuditEntry{Actor: system, Action: "project.accept", ProjectID: project, Subject: repositorySubject(id), At: now,
			Payload: map[string]any{"repo": name, "adopted": adopted}})
	})
}

// FailProvisioning records why a provisioning failed; never over one that
// succeeded (R-PROV-06).
func (l *Ledger) FailProvisioning(ctx context.Context, id int64, p domain.Problem) error {
	_, err := l.exec(ctx, `
		UPDATE repositories SET provision_status = 'Failed', provision_class = $2, provision_reason = $3, provision_message = left($4, $5),
			provision_failed_at = $6, provision_retry_at = $7, provision_claimed_at = NULL
		WHERE id = $1 AND provision_status <> 'OK'`, id, p.Class, p.Reason, clean(p.Message), maxProvisionMessage, p.At, orNull(p.RetryAt))
	return err
}
