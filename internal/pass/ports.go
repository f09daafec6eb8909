// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"context"
	"time"

	"github.com/sluice-dev/sluice/internal/domain"
)

// Store is the ledger as the pass needs it. Every write that takes a lease is
// conditional on still holding it and fails with reason LeaseLost otherwise
// (R-LEASE-05).
type Store interface {
	ProjectsWithWork(ctx context.Context, now time.Time) ([]int64, error)
	NextWorkAt(ctx context.Context) (at time.Time, ok bool, err error)
	Project(ctx context.Context, id int64) (domain.Project, error)
	Repository(ctx context.Context, id int64) (domain.Repository, error)

	TakeOverLeases(ctx context.Context, except string, now time.Time) (int, error)
	ClaimLease(ctx context.Context, projectID int64, holder string, now time.Time) (domain.Lease, bool, error)
	RenewLease(ctx context.Context, l domain.Lease, now time.Time) (domain.Lease, error)
	ReleaseLease(ctx context.Context, l domain.Lease) error

	RecordProblem(ctx context.Context, projectID int64, p domain.Problem) error
	ClearProblem(ctx context.Context, projectID int64) error
	RecordSource(ctx context.Context, projectID int64, source domain.RepositoryRef) error
	IsDistribution(ctx context.Context, githubID int64) (bool, error)
	ClaimDistribution(ctx context.Context, l domain.Lease, d domain.RepositoryRef, now time.Time) error
	RecordBuilt(ctx context.Context, l domain.Lease, fullName string, heads, sourceHeads domain.Heads, now time.Time) error

	NextRequest(ctx context.Context, projectID int64, now time.Time) (domain.Request, bool, error)
	AnswerRequest(ctx context.Context, l domain.Lease, requestID int64, a domain.Answer, reason, message string, retryAt, now time.Time) error
	StartPass(ctx context.Context, l domain.Lease, s domain.PassStart, now time.Time) (domain.Pass, error)
	ActivePass(ctx context.Context, projectID int64) (domain.Pass, bool, error)
	PendingTargets(ctx context.Context, passID int64) ([]int64, error)
	Settle(ctx context.Context, l domain.Lease, passID, repositoryID int64, s domain.Settlement, now time.Time) error
	FinishPass(ctx context.Context, l domain.Lease, passID int64, now time.Time) (p domain.Pass, cleared bool, err error)
	AbandonPass(ctx context.Context, l domain.Lease, passID int64, now time.Time) error

	RecordBotCommit(ctx context.Context, l domain.Lease, repositoryID int64, sha string, kind domain.BotCommitKind, now time.Time) error
	IsBotCommit(ctx context.Context, githubID int64, sha string) (bool, error)
	PullRequest(ctx context.Context, repositoryID int64, branch string) (domain.PullRequest, bool, error)
	RecordPullRequest(ctx context.Context, l domain.Lease, pr domain.PullRequest) error
	MarkDeleted(ctx context.Context, githubID int64, via string, now time.Time) ([]domain.ObjectRef, error)
	Audit(ctx context.Context, e domain.AuditEntry) error
}

// GitHub gives access to GitHub as one App of the cluster.
type GitHub interface {
	// Client returns the client of the App's installation on an account.
	Client(ctx context.Context, app, account string) (Client, error)
	// Bot returns who the App's commits and pull requests come from.
	Bot(app string) (domain.AppInfo, error)
	// Remote returns a repository's git address with the installation's token.
	Remote(app string, c Client, fullName string) (domain.Remote, error)
}

// Client is what the pass asks of one installation. Repositories are addressed
// by id (R-CORE-08).
type Client interface {
	Token(ctx context.Context) (string, error)
	Repository(ctx context.Context, id int64) (domain.GitHubRepository, error)
	RepositoryByName(ctx context.Context, fullName string) (domain.GitHubRepository, error)
	CreateRepository(ctx context.Context, org string, n domain.NewRepository) (domain.GitHubRepository, error)
	IsEmpty(ctx context.Context, id int64) (bool, error)
	Ref(ctx context.Context, id int64, ref string) (sha string, found bool, err error)
	Compare(ctx context.Context, id int64, base, head string) (domain.Comparison, error)
	PullRequest(ctx context.Context, id int64, number int) (domain.GitHubPullRequest, error)
	FindOpenPullRequest(ctx context.Context, repo domain.GitHubRepository, head, base string) (domain.GitHubPullRequest, bool, error)
	CreatePullRequest(ctx context.Context, id int64, n domain.NewPullRequest) (domain.GitHubPullRequest, error)
	AddLabels(ctx context.Context, id int64, number int, labels []string) error
	Comment(ctx context.Context, id int64, number int, body string) error
}

// Git brings distributions in step and pushes from them.
type Git interface {
	Distribute(ctx context.Context, r domain.DistributeRequest) (domain.DistributeResult, error)
	// Snapshot returns the distribution's branches as they are now; every
	// repository of a pass receives from the same one (R-SYNC-01).
	Snapshot(ctx context.Context, key string, distribution domain.Remote, branches []string) (Snapshot, error)
}

// Snapshot is a local copy of a distribution to push from.
type Snapshot interface {
	Heads() domain.Heads
	Push(ctx context.Context, to domain.Remote, updates []domain.RefUpdate) error
	Close() error
}

// Authorizer judges the grants of a GitHubApp at the time of use, on names as
// resolved by id. Its error is Blocked with reason NotGranted.
type Authorizer interface {
	Authorize(ctx context.Context, app, namespace string, use domain.Use, subject string) error
}
