// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// GitHubAppSpec is one GitHub App on one GitHub server, and who may use it.
// +kubebuilder:validation:XValidation:rule="!has(self.webhookSecretRefs) || self.webhookSecretRefs.all(r, r.name != self.privateKeyRef.name)",message="webhookSecretRefs must name other Secrets than privateKeyRef: the receiver may read them and must never see the private key"
type GitHubAppSpec struct {
	// AppID is the App's numeric id, shown as "App ID" on its settings page.
	// Immutable. A second GitHubApp with the same appID and baseURL is
	// Stalled, reason DuplicateApp.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="appID is immutable: make a new GitHubApp for another App"
	AppID int64 `json:"appID"`
	// BaseURL of GitHub's REST API: https://api.github.com, or
	// https://HOST/api/v3 for GitHub Enterprise Server. The git and GraphQL
	// addresses follow from it. Plain http sends tokens in the clear and is for
	// a simulator. Immutable. Default https://api.github.com.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^https?://[A-Za-z0-9.:\[\]_-]+(/[A-Za-z0-9._~/-]*[A-Za-z0-9._~-])?$')`,message="write baseURL as https://HOST or https://HOST/api/v3: no slash at the end, no user, no query"
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'^https?://(www[.])?github[.]com(/|$)')`,message="github.com is the web site: write https://api.github.com"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="baseURL is immutable: make a new GitHubApp for another server"
	// +kubebuilder:default="https://api.github.com"
	// +optional
	BaseURL string `json:"baseURL,omitempty"`
	// ControllerName says which installation of the operator works with this
	// App, so that two never write one status: the one started with the same
	// --controller-name. Immutable. Default sluice.dev/sluice.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="controllerName is immutable: make a new GitHubApp"
	// +kubebuilder:default="sluice.dev/sluice"
	// +optional
	ControllerName string `json:"controllerName,omitempty"`
	// PrivateKeyRef names the App's private key (PEM) in the operator's
	// resource namespace. Without a key, privateKey and then
	// githubAppPrivateKey (Flux's name) are looked for.
	PrivateKeyRef SecretKeyReference `json:"privateKeyRef"`
	// WebhookSecretRefs name the webhook secrets in the operator's resource
	// namespace: several during a rotation, all of them tried in constant
	// time (R-HOOK-01). Without any, every delivery is refused.
	// +kubebuilder:validation:MaxItems=5
	// +listType=map
	// +listMapKey=name
	// +listMapKey=key
	// +optional
	WebhookSecretRefs []WebhookSecretReference `json:"webhookSecretRefs,omitempty"`
	// Grants say who may use the App for what. Empty means nobody. They are
	// judged on names as resolved by id at the time of use.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	Grants []Grant `json:"grants,omitempty"`
	// Channels name where notifications may go. No effect yet.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	// +optional
	Channels []Channel `json:"channels,omitempty"`
	// Budget bounds what the App asks of GitHub. No effect yet.
	// +optional
	Budget *Budget `json:"budget,omitempty"`
	// Deliveries say how often GitHub's delivery log is looked at. No effect
	// yet.
	// +optional
	Deliveries *Deliveries `json:"deliveries,omitempty"`
	// Suspend stops all work with this App. Events are still received and
	// recorded. Default false.
	// +kubebuilder:default=false
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// WebhookSecretReference names one key of a Secret in the operator's resource
// namespace.
type WebhookSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key within the Secret. Default webhookSecret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:default=webhookSecret
	// +optional
	Key string `json:"key,omitempty"`
}

// Grant lets a set of namespaces use the App for some things. It is judged on
// names as resolved by id at the time of use.
// +kubebuilder:validation:XValidation:rule="(has(self.organizations) && size(self.organizations) > 0) || (has(self.sources) && size(self.sources) > 0) || (has(self.downstream) && size(self.downstream) > 0)",message="a grant must allow something: write organizations, sources or downstream, or remove the grant"
type Grant struct {
	// Name of the grant. Messages and the audit log use it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Namespaces the grant is for.
	Namespaces NamespaceSelection `json:"namespaces"`
	// Organizations in which repositories may be made, as logins: the
	// distribution and provisioned repositories.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9][A-Za-z0-9_-]*$`
	// +listType=set
	// +optional
	Organizations []string `json:"organizations,omitempty"`
	// Sources that may be read, as owner/name with * for any characters but
	// a slash.
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=200
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_*-]+/[A-Za-z0-9_*.-]+$`
	// +listType=set
	// +optional
	Sources []string `json:"sources,omitempty"`
	// Downstream repositories that may be written to, as owner/name with *
	// for any characters but a slash.
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=200
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_*-]+/[A-Za-z0-9_*.-]+$`
	// +listType=set
	// +optional
	Downstream []string `json:"downstream,omitempty"`
}

// NamespaceSelection chooses namespaces.
// +union
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="self.from == 'Selector' ? has(self.selector) : !has(self.selector)",message="set selector exactly when from is Selector"
type NamespaceSelection struct {
	// From says which namespaces: All, or those that the Selector matches.
	// +kubebuilder:validation:Enum=All;Selector
	// +unionDiscriminator
	From NamespacesFrom `json:"from"`
	// Selector matches the namespaces' labels. A single namespace is matched
	// by its label kubernetes.io/metadata.name.
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`
}

// Covers reports whether the selection holds for a namespace with these labels.
// An unknown From covers nothing. The error says what is wrong with the
// selector.
func (in NamespaceSelection) Covers(namespaceLabels map[string]string) (bool, error) {
	switch in.From {
	case NamespacesAll:
		return true, nil
	case NamespacesSelector:
		s, err := in.Selector.AsSelector()
		return err == nil && s.Matches(labels.Set(namespaceLabels)), err
	default:
		return false, nil
	}
}

// NamespacesFrom says which namespaces a grant is for.
type NamespacesFrom string

// Choices of namespaces.
const (
	NamespacesAll      NamespacesFrom = "All"
	NamespacesSelector NamespacesFrom = "Selector"
)

// Channel is a place notifications may go to.
type Channel struct {
	// Name by which projects refer to it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// URLSecretRef names the address, which often is a secret itself, in the
	// operator's resource namespace. Without a key, address is looked for.
	// Loopback, link-local and cluster addresses are refused.
	URLSecretRef SecretKeyReference `json:"urlSecretRef"`
}

// Budget bounds requests to GitHub, per installation.
type Budget struct {
	// ContentPerMinute bounds pull requests, comments and invitations a
	// minute; GitHub's own limit is 80. Default 60. No effect yet.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:default=60
	// +optional
	ContentPerMinute int32 `json:"contentPerMinute,omitempty"`
	// ContentPerHour bounds the same an hour; GitHub's own limit is 500.
	// Default 450. No effect yet.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:default=450
	// +optional
	ContentPerHour int32 `json:"contentPerHour,omitempty"`
	// ReservePercent of the hourly quota is kept back from syncs and polls, for
	// what cannot wait. Default 10. No effect yet.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=90
	// +kubebuilder:default=10
	// +optional
	ReservePercent *int32 `json:"reservePercent,omitempty"`
	// WriteSpacing between two REST writes, as a duration. Default 1s. No
	// effect yet.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,4}$') && duration(self) <= duration('1m')`,message="write a duration of at most 1m, such as 1s"
	// +kubebuilder:default="1s"
	// +optional
	WriteSpacing *metav1.Duration `json:"writeSpacing,omitempty"`
	// Pushes bound git pushes in flight. No effect yet.
	// +optional
	Pushes *PushBudget `json:"pushes,omitempty"`
}

// PushBudget bounds git pushes in flight.
// +kubebuilder:validation:XValidation:rule="self.start <= self.max",message="start must not be above max"
type PushBudget struct {
	// Start is how many are in flight at first. Default 8. No effect yet.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +kubebuilder:default=8
	// +optional
	Start int32 `json:"start,omitempty"`
	// Max is how many may be in flight at most. Default 64. No effect yet.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	// +kubebuilder:default=64
	// +optional
	Max int32 `json:"max,omitempty"`
}

// Deliveries say how GitHub's delivery log is looked at.
type Deliveries struct {
	// Interval between two looks (R-REC-15), as a duration of at least 1m.
	// Default 24h. No effect yet.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m')`,message="write a duration of at least 1m, such as 24h"
	// +kubebuilder:default="24h"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// GitHubAppStatus is what is known of the App.
type GitHubAppStatus struct {
	// ObservedGeneration is the generation last acted on; -1 before the first
	// look.
	// +kubebuilder:default=-1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Ready, Reconciling, Stalled, WebhookHealthy, FieldsIgnored.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Slug of the App; its commits and pull requests come from slug[bot].
	// +kubebuilder:validation:MaxLength=200
	// +optional
	Slug string `json:"slug,omitempty"`
	// BotUserID is the account id of slug[bot].
	// +optional
	BotUserID int64 `json:"botUserID,omitempty"`
	// Installations of the App.
	// +optional
	Installations *InstallationsStatus `json:"installations,omitempty"`
	// RateLimit is the lowest quota seen among the installations.
	// +optional
	RateLimit *RateLimitStatus `json:"rateLimit,omitempty"`
	// Deliveries of webhooks.
	// +optional
	Deliveries *DeliveriesStatus `json:"deliveries,omitempty"`
	// LastEvent received for the App.
	// +optional
	LastEvent *Event `json:"lastEvent,omitempty"`
}

// InstallationsStatus counts the App's installations.
type InstallationsStatus struct {
	// Total number of installations.
	Total int32 `json:"total"`
	// Suspended is how many of them are suspended.
	Suspended int32 `json:"suspended"`
	// Sample of at most 20, by account.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=account
	// +optional
	Sample []InstallationStatus `json:"sample,omitempty"`
}

// InstallationStatus is one installation.
type InstallationStatus struct {
	// Account is the login it is installed on.
	// +kubebuilder:validation:MaxLength=100
	Account string `json:"account"`
	// Suspended is true while the account suspends the App.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
	// PermissionsMissing lists what the product needs and the installation
	// does not give, as permission=access.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=100
	// +listType=set
	// +optional
	PermissionsMissing []string `json:"permissionsMissing,omitempty"`
}

// RateLimitStatus is GitHub's primary quota.
type RateLimitStatus struct {
	// Remaining requests.
	Remaining int64 `json:"remaining"`
	// Reset is when the quota is full again.
	// +optional
	Reset *metav1.Time `json:"reset,omitempty"`
}

// DeliveriesStatus says whether events arrive.
type DeliveriesStatus struct {
	// LastReceivedAt is when the last delivery was stored.
	// +optional
	LastReceivedAt *metav1.Time `json:"lastReceivedAt,omitempty"`
	// LastCheckedAt is when GitHub's delivery log was last looked at.
	// +optional
	LastCheckedAt *metav1.Time `json:"lastCheckedAt,omitempty"`
	// Redelivered is how many were asked for again.
	// +optional
	Redelivered int64 `json:"redelivered,omitempty"`
	// Unrecoverable is how many GitHub no longer keeps.
	// +optional
	Unrecoverable int64 `json:"unrecoverable,omitempty"`
	// Parked is how many failed too often.
	// +optional
	Parked int64 `json:"parked,omitempty"`
}

// GitHubApp is one GitHub App on one GitHub server: its credentials, who may
// use it for what, and whether it works.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ghapp,categories=sluice
// +kubebuilder:printcolumn:name="App ID",type=integer,JSONPath=`.spec.appID`
// +kubebuilder:printcolumn:name="Slug",type=string,JSONPath=`.status.slug`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Installations",type=integer,JSONPath=`.status.installations.total`
// +kubebuilder:printcolumn:name="Last Event",type=date,JSONPath=`.status.lastEvent.receivedAt`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GitHubApp struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec GitHubAppSpec `json:"spec"`
	// Status is what is.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status GitHubAppStatus `json:"status,omitempty"`
}

// GetConditions returns the object's conditions.
func (in *GitHubApp) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the object's conditions.
func (in *GitHubApp) SetConditions(c []metav1.Condition) { in.Status.Conditions = c }

// GitHubAppList is a list of GitHubApps.
// +kubebuilder:object:root=true
type GitHubAppList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GitHubApp `json:"items"`
}
