// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	"github.com/sluice-dev/sluice/internal/domain"
)

// Ledger is the database as the reconcilers need it.
type Ledger interface {
	UpsertProject(ctx context.Context, s domain.ProjectSpec, now time.Time) (domain.Project, error)
	ProjectByUID(ctx context.Context, uid string) (domain.Project, error)
	ProjectView(ctx context.Context, uid string) (domain.ProjectView, error)
	ReleaseProject(ctx context.Context, uid, actor string, now time.Time) error
	PurgeProject(ctx context.Context, uid, actor string, now time.Time) (receipts int, err error)
	ClearProblem(ctx context.Context, projectID int64) error
	RecordRequest(ctx context.Context, projectID int64, t domain.Token, a domain.Answer, reason, message string, now time.Time) (domain.Request, bool, error)
	SetRecipients(ctx context.Context, projectID int64, list []domain.Recipient, now time.Time) ([]domain.Repository, error)
	SetObject(ctx context.Context, id int64, key domain.ObjectKey) error

	RepositoryByObject(ctx context.Context, key domain.ObjectKey) (domain.Repository, error)
	RepositoryView(ctx context.Context, id int64) (domain.RepositoryView, error)
	Project(ctx context.Context, id int64) (domain.Project, error)
	SetSuspended(ctx context.Context, id int64, suspended bool) error
	UpsertHandMade(ctx context.Context, h domain.HandMade, now time.Time) (domain.Repository, error)
	ReleaseHandMade(ctx context.Context, objectUID string, now time.Time) error
}

// Engine does the sync work that rows ask for.
type Engine interface {
	// Wake makes it look for work now.
	Wake()
}

// Provisioner brings one repository's provisioning to its end, or as far as it
// can be; the fault it returns is on the row already.
type Provisioner interface {
	Step(ctx context.Context, repositoryID int64) error
}

// AppConnection is a GitHub App that answered.
type AppConnection interface {
	Self(ctx context.Context) (domain.AppInfo, error)
	Installations(ctx context.Context) ([]domain.Installation, error)
}

// Apps connects to GitHub Apps and tells the rest of the product which work.
type Apps interface {
	// Connect returns the App's connection, the same one as long as the
	// credentials are.
	Connect(name string, appID int64, baseURL string, privateKey []byte) (AppConnection, error)
	// Register makes the App usable by name; Unregister ends that.
	Register(name string, info domain.AppInfo)
	Unregister(name string)
}
