// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/testenv"
)

// The smallest manifests that say something. Cases lay a change over them, as a
// JSON merge patch in YAML: null removes a field.
const (
	minimalApp = `
apiVersion: sluice.dev/v1alpha1
kind: GitHubApp
metadata: {generateName: app-}
spec:
  appID: 4711
  privateKeyRef: {name: key}
`
	minimalProject = `
apiVersion: sluice.dev/v1alpha1
kind: ProjectSync
metadata: {generateName: lab-}
spec:
  appRef: {name: sluice-demo}
  source: {repository: acme/lab1-source}
`
	minimalRepo = `
apiVersion: sluice.dev/v1alpha1
kind: RepoReconcile
metadata: {generateName: repo-}
spec:
  appRef: {name: sluice-demo}
  repository: {owner: acme, name: lab1-r01}
`
)

func newClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(testenv.Cluster(t).Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	// A field that the schema does not know is a mistake of the test.
	return client.WithFieldValidation(c, "Strict")
}

// manifest lays changes over a base and returns the object, in the namespace
// when its kind has one.
func manifest(t *testing.T, namespace, base string, changes ...string) *unstructured.Unstructured {
	t.Helper()
	document := toJSON(t, base)
	for _, change := range changes {
		patched, err := jsonpatch.MergePatch(document, toJSON(t, change))
		if err != nil {
			t.Fatalf("%v in %s", err, change)
		}
		document = patched
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(document, o); err != nil {
		t.Fatal(err)
	}
	if o.GetKind() != "GitHubApp" {
		o.SetNamespace(namespace)
	}
	return o
}

func toJSON(t *testing.T, text string) []byte {
	t.Helper()
	b, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return b
}

// manifestCase is a change over a minimal manifest, and what the API server
// says: part of its message, or nothing when it takes the manifest.
type manifestCase struct{ name, change, says string }

func TestManifests(t *testing.T) {
	for kind, set := range map[string]struct {
		base  string
		empty func() client.Object
		cases []manifestCase
	}{
		"GitHubApp":     {minimalApp, func() client.Object { return &v1alpha1.GitHubApp{} }, appCases},
		"ProjectSync":   {minimalProject, func() client.Object { return &v1alpha1.ProjectSync{} }, projectCases},
		"RepoReconcile": {minimalRepo, func() client.Object { return &v1alpha1.RepoReconcile{} }, repoCases},
	} {
		t.Run(kind, func(t *testing.T) {
			c, namespace := newClient(t), testenv.Namespace(t)
			for _, m := range set.cases {
				t.Run(m.name, func(t *testing.T) {
					g := NewWithT(t)
					o := manifest(t, namespace, set.base, m.change)
					err := c.Create(t.Context(), o, client.DryRunAll)
					if m.says != "" {
						g.Expect(err).To(MatchError(ContainSubstring(m.says)))
						return
					}
					g.Expect(err).NotTo(HaveOccurred())
					// What the API server takes, the operator must be able to
					// read: one object that it cannot read would hide all others
					// of the kind from it.
					g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, set.empty())).To(Succeed())
				})
			}
		})
	}
}

const (
	saysFullName = "write the repository as owner/name"
	saysBranch   = "write the branch as git branch shows it"
	saysDuration = "write a duration"
	saysPath     = "write the path from the repository's root"
	saysTime     = "spec.deadline.at"
)

var appCases = []manifestCase{
	{"minimal", `{}`, ""},
	{"everything", `
spec:
  baseURL: https://github.example.com/api/v3
  controllerName: example.com/other
  privateKeyRef: {name: key, key: privateKey}
  webhookSecretRefs: [{name: hook}, {name: hook, key: previous}, {name: other}]
  grants:
  - name: labs
    namespaces: {from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: labs}}}
    organizations: [acme]
    sources: ["acme/lab*"]
    downstream: ["acme/lab1-*", "*/*"]
  - name: staff
    namespaces: {from: Selector, selector: {matchExpressions: [{key: team, operator: In, values: [a, b]}, {key: x, operator: Exists}]}}
    sources: [acme/handbook]
  - name: everyone
    namespaces: {from: All}
    organizations: [acme_corp]
  channels: [{name: chat, urlSecretRef: {name: chat}}]
  budget: {contentPerMinute: 30, contentPerHour: 100, reservePercent: 0, writeSpacing: 1500ms, pushes: {start: 4, max: 4}}
  deliveries: {interval: 12h}
  suspend: true`, ""},
	{"a simulator on this machine", `{spec: {baseURL: "http://127.0.0.1:8443"}}`, ""},
	{"an IPv6 address", `{spec: {baseURL: "http://[::1]:8443"}}`, ""},
	{"no App ID", `{spec: {appID: null}}`, "spec.appID: Required value"},
	{"an App ID of zero", `{spec: {appID: 0}}`, "spec.appID"},
	{"an App ID beyond what Go reads", `{spec: {appID: 9223372036854775808}}`, "spec.appID"},
	{"the web site instead of the API", `{spec: {baseURL: "https://github.com"}}`, "github.com is the web site: write https://api.github.com"},
	{"the web site's page of the organization", `{spec: {baseURL: "https://www.github.com/acme"}}`, "github.com is the web site"},
	{"a slash at the end", `{spec: {baseURL: "https://api.github.com/"}}`, "no slash at the end"},
	{"a password in the address", `{spec: {baseURL: "https://me:secret@api.github.com"}}`, "no user"},
	{"a query in the address", `{spec: {baseURL: "https://api.github.com?x=1"}}`, "no query"},
	{"no scheme", `{spec: {baseURL: api.github.com}}`, "write baseURL as https://HOST"},
	{"an empty address", `{spec: {baseURL: ""}}`, "write baseURL as https://HOST"},
	{"an empty controller name", `{spec: {controllerName: ""}}`, "spec.controllerName"},
	{"no private key", `{spec: {privateKeyRef: null}}`, "spec.privateKeyRef: Required value"},
	{"an empty Secret name", `{spec: {privateKeyRef: {name: ""}}}`, "spec.privateKeyRef.name"},
	{"the private key's Secret also holds the webhook secret", `{spec: {webhookSecretRefs: [{name: key, key: hook}]}}`, "webhookSecretRefs must name other Secrets than privateKeyRef"},
	{"one webhook secret twice", `{spec: {webhookSecretRefs: [{name: hook}, {name: hook, key: webhookSecret}]}}`, "Duplicate value"},
	{"six webhook secrets", `{spec: {webhookSecretRefs: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}]}}`, "must have at most 5 items"},
	{"a grant of nothing", `{spec: {grants: [{name: a, namespaces: {from: All}}]}}`, "a grant must allow something"},
	{"two grants of one name", `{spec: {grants: [{name: a, namespaces: {from: All}, organizations: [acme]}, {name: a, namespaces: {from: All}, organizations: [b]}]}}`, "Duplicate value"},
	{"a selector is missing", `{spec: {grants: [{name: a, namespaces: {from: Selector}, organizations: [acme]}]}}`, "set selector exactly when from is Selector"},
	{"a selector too much", `{spec: {grants: [{name: a, namespaces: {from: All, selector: {matchLabels: {a: b}}}, organizations: [acme]}]}}`, "set selector exactly when from is Selector"},
	{"an empty selector", `{spec: {grants: [{name: a, namespaces: {from: Selector, selector: {}}, organizations: [acme]}]}}`, "an empty selector would match every namespace"},
	{"a label key that is none", `{spec: {grants: [{name: a, namespaces: {from: Selector, selector: {matchLabels: {"not a key": b}}}, organizations: [acme]}]}}`, "each key must be a label key"},
	{"an operator that is none", `{spec: {grants: [{name: a, namespaces: {from: Selector, selector: {matchExpressions: [{key: a, operator: Equals, values: [b]}]}}, organizations: [acme]}]}}`, `supported values: "In", "NotIn", "Exists", "DoesNotExist"`},
	{"In without values", `{spec: {grants: [{name: a, namespaces: {from: Selector, selector: {matchExpressions: [{key: a, operator: In}]}}, organizations: [acme]}]}}`, "In and NotIn need values"},
	{"Exists with values", `{spec: {grants: [{name: a, namespaces: {from: Selector, selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}, organizations: [acme]}]}}`, "Exists and DoesNotExist take none"},
	{"a source without its owner", `{spec: {grants: [{name: a, namespaces: {from: All}, sources: [lab1]}]}}`, "spec.grants[0].sources[0]"},
	{"an organization as an address", `{spec: {grants: [{name: a, namespaces: {from: All}, organizations: ["https://github.com/acme"]}]}}`, "spec.grants[0].organizations[0]"},
	{"more pushes at first than at most", `{spec: {budget: {pushes: {start: 10, max: 5}}}}`, "start must not be above max"},
	{"writes an hour apart", `{spec: {budget: {writeSpacing: 1h}}}`, "write a duration of at most 1m"},
	{"deliveries looked at all the time", `{spec: {deliveries: {interval: 1s}}}`, "write a duration of at least 1m"},
	{"a duration in words", `{spec: {deliveries: {interval: 1 day}}}`, saysDuration},
	{"a duration without a unit", `{spec: {deliveries: {interval: "3600"}}}`, saysDuration},
	{"a negative duration", `{spec: {deliveries: {interval: -5m}}}`, saysDuration},
	{"a duration beyond what Go reads", `{spec: {deliveries: {interval: 99999999h}}}`, saysDuration},
}

var projectCases = []manifestCase{
	{"minimal", `{}`, ""},
	{"everything", `
spec:
  stage: Published
  suspend: true
  deletionPolicy: Purge
  source: {repository: acme/lab1-source, branches: [main, feature/x_1.2+3], history: Squash, interval: 5m, overlayDirectory: handout, ignoreFile: .handoutignore}
  distribution: {repository: acme/lab1-handed-out, takeoverFrom: 0c6a}
  repositories:
    organization: Acme
    provision: {nameTemplate: "lab1-{{ .recipient }}", visibility: Internal, permission: Triage}
    unrelated: Overlay
    onRemoval: Revoke
    confirmRemoval: 3
    objects: {limit: 0}
    list:
    - {recipient: r01, members: [{login: octocat}, {login: hubot_corp}]}
    - {recipient: r02, repository: other-org/lab.one, deadline: {at: "2026-10-05T18:00:00+02:00", grace: 1h30m, strategy: Commit}, exclude: true, test: true}
    listFrom: [{configMapRef: {name: course, key: recipients.csv}}]
    selector: {names: ["svc-*"], topics: [go], properties: [{name: tier, value: one}], excludeNames: ["*-old"], includeForks: true, maxRepositories: 500}
  deadline: {at: "2026-10-05T18:00:00.5Z", grace: 0s, strategy: Lock}
  protectedFiles: [.github/workflows/grading.yml]
  protection: {mode: Ruleset}
  runs: {gradedWorkflow: grading.yml, finalReview: Enabled}
  reconcile: {interval: 12h, runsInterval: 5m, quiet: 0s, request: now}
  notifications: [{channel: chat, events: [PassEnded, Held, Failed]}]
  pullRequest:
    branchPrefix: bot/update/
    title: "{{ .project }}: {{.branch}} to {{ .sha }}"
    body: "{{ .count }}, {single} braces: {{ .files }}"
    labels: [one]
    reviewers: [octocat]
    assignees: [octocat]
    draft: true
    announce: None
    whenEmpty: Leave
  sync:
    request: "2026-10-05"
    requestedBy: Somebody
    trigger: {type: Schedule, schedule: {cron: "0 6 * * 1-5", timeZone: Europe/Zurich, startingDeadline: 2h}}
    concurrency: 8
    force: [{repository: acme/lab1-r01, head: 0123456789abcdef0123456789abcdef01234567}]
    waves: [{upTo: 5, then: {type: Pause, pause: 1h}}, {upTo: 25%, then: {type: Merged}}, {upTo: 100%, then: {type: Approval}}]
    maxFailures: 10%`, ""},
	{"a push starts a sync", `{spec: {sync: {trigger: {type: OnPush, onPush: {}}}}}`, ""},
	{"history with it", `{spec: {source: {history: Whole}}}`, ""},
	{"a list without provisioning, all adopted", `{spec: {repositories: {list: [{recipient: r01, repository: acme/x}, {recipient: r02, exclude: true}]}}}`, ""},
	{"maxFailures as a number", `{spec: {sync: {maxFailures: 0}}}`, ""},
	{"a deadline that is past", `{spec: {deadline: {at: "2001-01-01T00:00:00Z"}}}`, ""},

	{"a name of 64 characters", `{metadata: {generateName: null, name: ` + strings.Repeat("a", 64) + `}}`, "metadata.name must have at most 63 characters"},
	{"no App", `{spec: {appRef: null}}`, "spec.appRef: Required value"},
	{"an App of another kind", `{spec: {appRef: {kind: Secret}}}`, `supported values: "GitHubApp"`},
	{"an unknown stage", `{spec: {stage: published}}`, `supported values: "Draft", "Published", "Archived"`},
	{"an unknown deletion policy", `{spec: {deletionPolicy: Delete}}`, `supported values: "Retain", "Purge"`},
	{"an unknown field", `{spec: {pullRequests: {draft: true}}}`, `unknown field "spec.pullRequests"`},

	{"no source", `{spec: {source: null}}`, "spec.source: Required value"},
	{"a source by its address", `{spec: {source: {repository: "https://github.com/acme/lab1-source"}}}`, saysFullName},
	{"a source by its git address", `{spec: {source: {repository: acme/lab1-source.git}}}`, saysFullName},
	{"a source without its owner", `{spec: {source: {repository: lab1-source}}}`, saysFullName},
	{"an empty source", `{spec: {source: {repository: ""}}}`, saysFullName},
	{"a source called ..", `{spec: {source: {repository: acme/..}}}`, saysFullName},
	{"no branch", `{spec: {source: {branches: []}}}`, "spec.source.branches"},
	{"a branch twice", `{spec: {source: {branches: [main, main]}}}`, "each branch may be listed once"},
	{"a branch as a full ref", `{spec: {source: {branches: [refs/heads/main]}}}`, saysBranch},
	{"a branch that is an option to git", `{spec: {source: {branches: [--force]}}}`, saysBranch},
	{"a branch with a colon", `{spec: {source: {branches: ["main:other"]}}}`, saysBranch},
	{"a branch with two dots", `{spec: {source: {branches: [a..b]}}}`, saysBranch},
	{"a branch with an empty part", `{spec: {source: {branches: [a//b]}}}`, saysBranch},
	{"a branch ending in a slash", `{spec: {source: {branches: [a/]}}}`, saysBranch},
	{"a branch ending in a dot", `{spec: {source: {branches: [a.]}}}`, saysBranch},
	{"a branch ending in .lock", `{spec: {source: {branches: [a.lock/b]}}}`, saysBranch},
	{"R-SYNC-05 a branch that a sync would overwrite", `{spec: {source: {branches: [main, sync/main]}}}`, "collides with pullRequest.branchPrefix"},
	{"R-SYNC-05 a branch that leaves no room for the prefix", `{spec: {source: {branches: [sync]}}}`, "collides with pullRequest.branchPrefix"},
	{"an unknown history", `{spec: {source: {history: Shallow}}}`, `supported values: "Squash", "Whole"`},
	{"R-DIST-08 an overlay with history Whole", `{spec: {source: {history: Whole, overlayDirectory: handout}}}`, "overlayDirectory and ignoreFile work with history Squash only"},
	{"R-DIST-08 an ignore file with history Whole", `{spec: {source: {history: Whole, ignoreFile: .handoutignore}}}`, "overlayDirectory and ignoreFile work with history Squash only"},
	{"an overlay that leads out", `{spec: {source: {overlayDirectory: ../handout}}}`, saysPath},
	{"an overlay from the machine's root", `{spec: {source: {overlayDirectory: /handout}}}`, saysPath},
	{"an overlay with a slash at its end", `{spec: {source: {overlayDirectory: handout/}}}`, saysPath},
	{"an overlay that is the root", `{spec: {source: {overlayDirectory: .}}}`, saysPath},
	{"an empty ignore file", `{spec: {source: {ignoreFile: ""}}}`, "spec.source.ignoreFile"},
	{"an interval of a second", `{spec: {source: {interval: 1s}}}`, "write a duration of at least 1m"},

	{"the distribution is the source", `{spec: {distribution: {repository: Acme/Lab1-Source}}}`, "distribution.repository must be another repository than source.repository"},
	{"a distribution by its address", `{spec: {distribution: {repository: "git@github.com:acme/x"}}}`, saysFullName},

	{"an organization by its address", `{spec: {repositories: {organization: github.com/acme}}}`, "spec.repositories.organization"},
	{"a name template without the recipient", `{spec: {repositories: {provision: {nameTemplate: lab1}}}}`, "nameTemplate must hold {{ .recipient }}"},
	{"a name template with an unknown field", `{spec: {repositories: {provision: {nameTemplate: "{{ .login }}-{{ .recipient }}"}}}}`, "nameTemplate may hold letters, digits"},
	{"a name template with a slash", `{spec: {repositories: {provision: {nameTemplate: "acme/{{ .recipient }}"}}}}`, "nameTemplate may hold letters, digits"},
	{"a name template with a function", `{spec: {repositories: {provision: {nameTemplate: "{{ .recipient | lower }}"}}}}`, "nameTemplate must hold {{ .recipient }}"},
	{"a public repository", `{spec: {repositories: {provision: {nameTemplate: "{{ .recipient }}", visibility: Public}}}}`, `supported values: "Private", "Internal"`},
	{"R-PRIV-05 more than push", `{spec: {repositories: {provision: {nameTemplate: "{{ .recipient }}", permission: Admin}}}}`, `supported values: "Pull", "Triage", "Push"`},
	{"an entry that nothing makes", `{spec: {repositories: {list: [{recipient: r01}]}}}`, "an entry of list without repository needs provision"},
	{"a recipient twice", `{spec: {repositories: {list: [{recipient: r01, repository: acme/a}, {recipient: r01, repository: acme/b}]}}}`, "Duplicate value"},
	{"a recipient with a space", `{spec: {repositories: {list: [{recipient: "r 01", repository: acme/a}]}}}`, "write a recipient with letters, digits"},
	{"an empty recipient", `{spec: {repositories: {list: [{recipient: "", repository: acme/a}]}}}`, "write a recipient with letters, digits"},
	{"a recipient's repository by its address", `{spec: {repositories: {list: [{recipient: r01, repository: "https://github.com/acme/a"}]}}}`, saysFullName},
	{"a recipient works in the source", `{spec: {repositories: {list: [{recipient: r01, repository: ACME/lab1-source}]}}}`, "repositories.list names the source as somebody's repository"},
	{"a recipient works in the distribution", `{spec: {distribution: {repository: acme/out}, repositories: {list: [{recipient: r01, repository: acme/OUT}]}}}`, "repositories.list names the distribution as somebody's repository"},
	{"a member twice", `{spec: {repositories: {list: [{recipient: r01, repository: acme/a, members: [{login: a}, {login: a}]}]}}}`, "Duplicate value"},
	{"a member by address", `{spec: {repositories: {list: [{recipient: r01, repository: acme/a, members: [{login: a@example.com}]}]}}}`, "members[0].login"},
	{"too many objects", `{spec: {repositories: {objects: {limit: 5001}}}}`, "spec.repositories.objects.limit"},
	{"a removal beyond what Go reads", `{spec: {repositories: {confirmRemoval: 2147483648}}}`, "spec.repositories.confirmRemoval"},
	{"a selector of everything by accident", `{spec: {repositories: {selector: {maxRepositories: 10}}}}`, "a selector must choose by names, topics or properties"},
	{"a selector without a limit", `{spec: {repositories: {selector: {names: ["*"]}}}}`, "maxRepositories: Required value"},

	{"a deadline without its moment", `{spec: {deadline: {strategy: Lock}}}`, "spec.deadline.at: Required value"},
	{"a deadline without an offset", `{spec: {deadline: {at: "2026-10-05T18:00:00"}}}`, saysTime},
	{"a deadline that is a day", `{spec: {deadline: {at: "2026-10-05"}}}`, saysTime},
	{"a deadline in small letters, which Go cannot read", `{spec: {deadline: {at: "2026-10-05t18:00:00z"}}}`, saysTime},
	{"a deadline with a strange fraction, which Go cannot read", `{spec: {deadline: {at: "2026-10-05T18:00:00x5Z"}}}`, saysTime},
	{"a deadline with a strange offset, which Go cannot read", `{spec: {deadline: {at: "2026-10-05T18:00:00+99:00"}}}`, saysTime},
	{"a deadline on a day that is none", `{spec: {deadline: {at: "2026-02-30T18:00:00Z"}}}`, saysTime},
	{"a grace in days", `{spec: {deadline: {at: "2026-10-05T18:00:00Z", grace: 1d}}}`, saysDuration},
	{"a protected file that leads out", `{spec: {protectedFiles: [a/../b]}}`, saysPath},
	{"a runs interval of a second", `{spec: {reconcile: {runsInterval: 1s}}}`, "write a duration of at least 1m"},
	{"a notification of nothing", `{spec: {notifications: [{channel: chat, events: []}]}}`, "spec.notifications[0].events"},

	{"a prefix without a slash", `{spec: {pullRequest: {branchPrefix: sync-}}}`, "write branchPrefix as the start of a branch name that ends in a slash"},
	{"an empty prefix", `{spec: {pullRequest: {branchPrefix: ""}}}`, "write branchPrefix as the start of a branch name that ends in a slash"},
	{"a prefix that is an option to git", `{spec: {pullRequest: {branchPrefix: -x/}}}`, "write branchPrefix as the start of a branch name that ends in a slash"},
	{"a title with an unknown field", `{spec: {pullRequest: {title: "{{ .source }}"}}}`, "title knows {{ .branch }}, {{ .sha }} and {{ .project }} only"},
	{"a title with the body's field", `{spec: {pullRequest: {title: "{{ .files }}"}}}`, "title knows {{ .branch }}, {{ .sha }} and {{ .project }} only"},
	{"a title with open braces", `{spec: {pullRequest: {title: "{{ .branch"}}}`, "title knows {{ .branch }}, {{ .sha }} and {{ .project }} only"},
	{"a title of two lines", `{spec: {pullRequest: {title: "a\nb"}}}`, "title must be one line"},
	{"an empty title", `{spec: {pullRequest: {title: ""}}}`, "spec.pullRequest.title"},
	{"a body with a function", `{spec: {pullRequest: {body: "{{ len .files }}"}}}`, "body knows {{ .branch }}, {{ .sha }}, {{ .project }}, {{ .files }} and {{ .count }} only"},
	{"an unknown way to announce", `{spec: {pullRequest: {announce: Mail}}}`, `supported values: "Comment", "None"`},

	{"an empty request", `{spec: {sync: {request: ""}}}`, "spec.sync.request"},
	{"a request of two lines", `{spec: {sync: {request: "a\nb"}}}`, "spec.sync.request"},
	{"a long request", `{spec: {sync: {request: ` + strings.Repeat("a", 129) + `}}}`, "spec.sync.request: Too long"},
	{"no repository at once", `{spec: {sync: {concurrency: 0}}}`, "spec.sync.concurrency"},
	{"onPush without its type", `{spec: {sync: {trigger: {type: Manual, onPush: {}}}}}`, "onPush goes with type OnPush only"},
	{"a schedule without its times", `{spec: {sync: {trigger: {type: Schedule}}}}`, "set schedule exactly when type is Schedule"},
	{"a schedule without its type", `{spec: {sync: {trigger: {schedule: {cron: "0 6 * * 1"}}}}}`, "set schedule exactly when type is Schedule"},
	{"a schedule in words", `{spec: {sync: {trigger: {type: Schedule, schedule: {cron: every day}}}}}`, "write cron as five fields"},
	{"a forced branch name", `{spec: {sync: {force: [{repository: acme/a, head: main}]}}}`, "spec.sync.force[0].head"},
	{"a wave of nothing", `{spec: {sync: {waves: [{upTo: 0, then: {type: Merged}}]}}}`, "write upTo as a number from 1 to 100000"},
	{"a wave beyond everything", `{spec: {sync: {waves: [{upTo: 101%, then: {type: Merged}}]}}}`, "write upTo as a number from 1 to 100000"},
	{"a pause without its length", `{spec: {sync: {waves: [{upTo: 5, then: {type: Pause}}]}}}`, "set pause exactly when type is Pause"},
	{"a pause without its type", `{spec: {sync: {waves: [{upTo: 5, then: {type: Merged, pause: 1h}}]}}}`, "set pause exactly when type is Pause"},
	{"failures in words", `{spec: {sync: {maxFailures: some}}}`, "write maxFailures as a number from 0 to 100000"},
	{"failures beyond what Go reads", `{spec: {sync: {maxFailures: 2147483648}}}`, "write maxFailures as a number from 0 to 100000"},
	{"less than no failures", `{spec: {sync: {maxFailures: -1}}}`, "write maxFailures as a number from 0 to 100000"},
}

var repoCases = []manifestCase{
	{"minimal", `{}`, ""},
	{"by id", `{spec: {repository: {owner: null, name: null, id: 42}}}`, ""},
	{"everything", `
spec:
  projectRef: {name: lab1}
  recipient: r01
  members: [{login: octocat}]
  permission: Push
  provision: true
  deadline: {at: "2026-10-05T18:00:00Z"}
  lock: {state: Unlocked, at: "2026-10-06T18:00:00Z"}
  protection: {mode: Ruleset, reenable: again}
  protectedFiles: [grading.yml]
  runs: {accept: [0123456789abcdef0123456789abcdef01234567]}
  invite: {request: again}
  reconcile: {interval: 12h}
  suspend: true`, ""},
	{"locked without a moment", `{spec: {lock: {state: Locked}}}`, ""},

	{"no repository", `{spec: {repository: null}}`, "spec.repository: Required value"},
	{"an empty repository", `{spec: {repository: {owner: null, name: null}}}`, "name the repository either by id or by owner and name"},
	{"an id and a name", `{spec: {repository: {id: 42}}}`, "name the repository either by id or by owner and name"},
	{"a name without its owner", `{spec: {repository: {owner: null}}}`, "owner and name go together"},
	{"a full name as the name", `{spec: {repository: {name: acme/lab1-r01}}}`, "write the repository's name alone"},
	{"a git name", `{spec: {repository: {name: lab1-r01.git}}}`, "write the repository's name alone"},
	{"a name that is ..", `{spec: {repository: {name: ..}}}`, "write the repository's name alone"},
	{"an id beyond what Go reads", `{spec: {repository: {owner: null, name: null, id: 9223372036854775808}}}`, "spec.repository.id"},
	{"an unknown lock", `{spec: {lock: {state: locked}}}`, `supported values: "Locked", "Unlocked"`},
	{"R-DL-13 unlocked without a moment", `{spec: {lock: {state: Unlocked}}}`, "state Unlocked needs at"},
	{"a lock's moment that Go cannot read", `{spec: {lock: {state: Locked, at: "2026-10-05t18:00:00z"}}}`, "spec.lock.at"},
	{"R-PRIV-05 more than push", `{spec: {permission: Admin}}`, `supported values: "Pull", "Triage", "Push"`},
	{"a short accepted head", `{spec: {runs: {accept: [0123456]}}}`, "spec.runs.accept[0]"},
	{"R-PRIV-01 the source is no field of it", `{spec: {source: {repository: acme/lab1-source}}}`, `unknown field "spec.source"`},
}

// The largest list there may be is within the API server's limits on what
// validation costs.
func TestManifestsLargestList(t *testing.T) {
	g := NewWithT(t)
	c, namespace := newClient(t), testenv.Namespace(t)
	o := manifest(t, namespace, minimalProject, `{spec: {distribution: {repository: acme/handed-out}}}`)
	entries := func(n int) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = map[string]any{
				"recipient":  "r" + strings.Repeat("x", 50) + strconv.Itoa(i),
				"repository": "acme/" + strings.Repeat("x", 90) + strconv.Itoa(i),
				"deadline":   map[string]any{"at": "2026-10-05T18:00:00Z", "grace": "1h30m", "strategy": "Lock"},
				"members":    []any{map[string]any{"login": "octocat"}, map[string]any{"login": "hubot"}},
			}
		}
		return list
	}
	g.Expect(unstructured.SetNestedSlice(o.Object, entries(1000), "spec", "repositories", "list")).To(Succeed())
	g.Expect(c.Create(t.Context(), o)).To(Succeed())

	o.SetResourceVersion("")
	o.SetName("")
	g.Expect(unstructured.SetNestedSlice(o.Object, entries(1001), "spec", "repositories", "list")).To(Succeed())
	g.Expect(c.Create(t.Context(), o, client.DryRunAll)).To(MatchError(ContainSubstring("must have at most 1000 items")))
}
