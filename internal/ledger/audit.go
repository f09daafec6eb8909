// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-dev/sluice/internal/domain"
)

// system is the actor of what nobody asked for.
const system = "system"

func projectSubject(uid string) string  { return "project/" + uid }
func repositorySubject(id int64) string { return fmt.Sprintf("repository/%d", id) }

// audit appends an entry in the transaction of what it tells.
func audit(ctx context.Context, q db, e domain.AuditEntry) error {
	if e.Payload == nil {
		e.Payload = map[string]any{}
	}
	_, err := write(ctx, q, `INSERT INTO audit_log (actor, action, project_id, subject, payload, created_at) VALUES ($1, $2, nullif($3::bigint, 0), $4, $5, $6)`,
		clean(e.Actor), e.Action, e.ProjectID, e.Subject, e.Payload, e.At)
	return err
}

// Audit appends one entry (R-CORE-12). Steps that this package records write
// theirs by themselves.
func (l *Ledger) Audit(ctx context.Context, e domain.AuditEntry) error {
	return l.do(ctx, func(ctx context.Context, q db) error { return audit(ctx, q, e) })
}

// AuditEntries returns a project's entries in the order they were written.
// They outlive the project.
func (l *Ledger) AuditEntries(ctx context.Context, projectID int64) ([]domain.AuditEntry, error) {
	return all(ctx, l, scanAudit, `SELECT actor, action, coalesce(project_id, 0), subject, payload, created_at
		FROM audit_log WHERE project_id = $1 ORDER BY id`, projectID)
}

func scanAudit(row pgx.Row) (e domain.AuditEntry, err error) {
	err = row.Scan(&e.Actor, &e.Action, &e.ProjectID, &e.Subject, &e.Payload, &e.At)
	return e, err
}
