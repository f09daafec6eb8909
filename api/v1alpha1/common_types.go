// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Names that other programs write or read on these kinds.
const (
	// SyncRequestedAtAnnotation is the imperative twin of spec.sync.request:
	// any new value asks for one sync.
	SyncRequestedAtAnnotation = "sluice.dev/sync-requested-at"
	// SyncCancelledAtAnnotation stops a running pass within one repository.
	// It has no effect yet.
	SyncCancelledAtAnnotation = "sluice.dev/sync-cancelled-at"
	// AbandonRowsAnnotation, set to the object's UID, lets an object be
	// deleted although its rows cannot be reached: for a database that is
	// gone for good.
	AbandonRowsAnnotation = "sluice.dev/abandon-rows"
	// LedgerFinalizer keeps an object until its rows are released or purged.
	// Only a ProjectSync and a hand-made RepoReconcile carry it.
	LedgerFinalizer = "sluice.dev/ledger"
	// ProjectLabel names the ProjectSync that generated a RepoReconcile.
	ProjectLabel = "sluice.dev/project"
)

// Values that the API server fills in. They are here too for code that has no
// API server in front of it, and for fields whose parent was left out.
const (
	// DefaultBaseURL is spec.baseURL of a GitHubApp.
	DefaultBaseURL = "https://api.github.com"
	// DefaultControllerName is spec.controllerName of a GitHubApp.
	DefaultControllerName = "sluice.dev/sluice"
	// DefaultBranch is the only entry of spec.source.branches.
	DefaultBranch = "main"
	// DefaultBranchPrefix is spec.pullRequest.branchPrefix.
	DefaultBranchPrefix = "sync/"
	// DefaultConcurrency is spec.sync.concurrency, in repositories
	// (R-SYNC-02).
	DefaultConcurrency = 4
	// DefaultObjectLimit is spec.repositories.objects.limit, in objects.
	DefaultObjectLimit = 1000
)

// MaxMessageLength is how many characters a message field of a status takes.
// The API server refuses the whole status when one is longer.
const MaxMessageLength = 2048

// ShortenMessage returns text cut to what a message field of a status takes.
// It cuts between characters and says so with three dots.
func ShortenMessage(text string) string {
	runes := []rune(text)
	if len(runes) <= MaxMessageLength {
		return text
	}
	return string(runes[:MaxMessageLength-3]) + "..."
}

// SecretKeyReference names one key of a Secret in the operator's resource
// namespace.
type SecretKeyReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key within the Secret. Left out, the keys that the referring field
	// documents are looked for.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// AppReference names the GitHubApp that an object uses.
type AppReference struct {
	// Kind is always GitHubApp, which is the default.
	// +kubebuilder:validation:Enum=GitHubApp
	// +kubebuilder:default=GitHubApp
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name of the GitHubApp. One of its grants must allow this namespace what
	// the object asks for.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Branch is a branch name without refs/heads/.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=200
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z0-9_][A-Za-z0-9._+-]*(/[A-Za-z0-9_][A-Za-z0-9._+-]*)*$') && !self.matches(r'[.][.]|[.](/|$)|[.]lock(/|$)') && !self.startsWith('refs/')`,message="write the branch as git branch shows it, without refs/heads/: letters, digits and . _ + - in parts joined by /, none of them ending in . or .lock"
type Branch string

// Login is a GitHub account's login.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_-]*$`
type Login string

// Member is a person who works in a downstream repository.
type Member struct {
	// Login of the person's GitHub account. It is recorded; no effect yet:
	// invitations are not sent in this version.
	Login Login `json:"login"`
}

// FilePath is a path within a repository, without a leading slash.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule=`!self.matches(r'(^|/)[.]{0,2}(/|$)|[\x00-\x1f\\]')`,message="write the path from the repository's root, such as .github/workflows/grading.yml: no slash at either end, no empty part, no . or .. part, no backslash"
type FilePath string

// Deadline is when work in a repository ends.
// +structType=atomic
type Deadline struct {
	// At is the moment the deadline is reached (R-DL-02), with its offset or
	// Z. Syncs leave repositories past their effective deadline alone
	// (R-SYNC-03). A moment already past counts as reached.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	// +required
	At *metav1.Time `json:"at,omitempty"`
	// Grace is how long after the deadline runs on commits received in time
	// still count (R-DL-02), as a duration. Default 30m. No effect yet.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,4}$')`,message="write a duration such as 30m or 24h"
	// +kubebuilder:default="30m"
	// +optional
	Grace *metav1.Duration `json:"grace,omitempty"`
	// Strategy is what happens at the deadline: Lock forbids pushes, Commit
	// adds an empty commit to every handed-out branch, None does neither
	// (R-DL-04). Default None. Lock and Commit have no effect yet.
	// +kubebuilder:validation:Enum=Lock;Commit;None
	// +kubebuilder:default=None
	// +optional
	Strategy DeadlineStrategy `json:"strategy,omitempty"`
}

// DeadlineStrategy is what happens to a repository at its deadline.
type DeadlineStrategy string

// Deadline strategies.
const (
	DeadlineLock   DeadlineStrategy = "Lock"
	DeadlineCommit DeadlineStrategy = "Commit"
	DeadlineNone   DeadlineStrategy = "None"
)

// ReconcileSettings say how often what webhooks may have missed is looked for.
// They have no effect yet.
type ReconcileSettings struct {
	// Interval between two looks at a repository (R-REC-01), as a duration of
	// at least 1m. Default 24h. No effect yet.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m')`,message="write a duration of at least 1m, such as 24h"
	// +kubebuilder:default="24h"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// RunsInterval between two looks at a quiet repository's runs
	// (R-REC-01), as a duration of at least 1m. Default 15m. No effect yet.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m')`,message="write a duration of at least 1m, such as 15m"
	// +kubebuilder:default="15m"
	// +optional
	RunsInterval *metav1.Duration `json:"runsInterval,omitempty"`
	// Quiet is how long nothing must have happened before runs are looked
	// for (R-REC-03), as a duration. Default 30m. No effect yet.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,4}$')`,message="write a duration such as 30m or 24h"
	// +kubebuilder:default="30m"
	// +optional
	Quiet *metav1.Duration `json:"quiet,omitempty"`
	// Request asks for one look now: any new value. No effect yet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]+$`
	// +optional
	Request string `json:"request,omitempty"`
}

// LabelSelector chooses by labels, as Kubernetes' own selectors do. All of its
// parts must match.
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="an empty selector would match every namespace: write matchLabels or matchExpressions, or from: All"
type LabelSelector struct {
	// MatchLabels that must be there with these values.
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule=`self.all(k, k.matches(r'^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))`,message="each key must be a label key, such as kubernetes.io/metadata.name"
	// +optional
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`
	// MatchExpressions that must hold.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
type LabelValue string

// LabelSelectorRequirement is one condition on one label.
// +kubebuilder:validation:XValidation:rule="self.operator in ['In', 'NotIn'] ? (has(self.values) && size(self.values) > 0) : !has(self.values)",message="In and NotIn need values; Exists and DoesNotExist take none"
type LabelSelectorRequirement struct {
	// Key of the label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')`,message="write a label key, such as kubernetes.io/metadata.name"
	Key string `json:"key"`
	// Operator: In and NotIn compare with values, Exists and DoesNotExist ask
	// for the key alone.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`
	// Values to compare with.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Values []LabelValue `json:"values,omitempty"`
}

// AsSelector returns the selector to match labels with. A nil or empty one
// matches nothing, so that a grant left unfinished opens nothing. The error
// names the key or value that is not a legal label.
func (in *LabelSelector) AsSelector() (labels.Selector, error) {
	if in == nil || len(in.MatchLabels)+len(in.MatchExpressions) == 0 {
		return labels.Nothing(), nil
	}
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for k, v := range in.MatchLabels {
		s.MatchLabels[k] = string(v)
	}
	for _, e := range in.MatchExpressions {
		r := metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator}
		for _, v := range e.Values {
			r.Values = append(r.Values, string(v))
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing(), fmt.Errorf("the selector cannot be used: %w", err)
	}
	return selector, nil
}

// Event is the last outside event about an object. The receiver writes it, as
// a wake-up; what the event said is in the database.
type Event struct {
	// ID of the delivery.
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`
	// Event and action, in GitHub's words: pull_request.closed.
	// +kubebuilder:validation:MaxLength=100
	Event string `json:"event"`
	// ReceivedAt is when the receiver stored it.
	ReceivedAt metav1.Time `json:"receivedAt"`
}
