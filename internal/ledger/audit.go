// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-dev/sluice/internal/domain"
)

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func audit(ctx context.Context, q execer, e domain.AuditEntry) error {
	if e.Payload == nil {
		e.Payload = map[string]any{}
	}
	var project *int64
	if e.ProjectID != 0 {
		project = &e.ProjectID
	}
	_, err := q.Exec(ctx, `INSERT INTO audit_log (actor, action, project_id, subject, payload, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		e.Actor, e.Action, project, e.Subject, e.Payload, e.At)
	return err
}

// Audit appends one entry (R-CORE-12).
func (l *Ledger) Audit(ctx context.Context, e domain.AuditEntry) error {
	return l.fault(audit(ctx, l.pool, e))
}

// AuditEntries returns a project's entries in the order they were written.
func (l *Ledger) AuditEntries(ctx context.Context, projectID int64) ([]domain.AuditEntry, error) {
	rows, err := l.pool.Query(ctx, `SELECT actor, action, coalesce(project_id, 0), subject, payload, created_at FROM audit_log WHERE project_id = $1 ORDER BY id`, projectID)
	if err != nil {
		return nil, l.fault(err)
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (domain.AuditEntry, error) {
		var e domain.AuditEntry
		var at time.Time
		err := r.Scan(&e.Actor, &e.Action, &e.ProjectID, &e.Subject, &e.Payload, &at)
		e.At = at
		return e, err
	})
	return list, l.fault(err)
}
