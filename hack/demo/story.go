// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/githubsim"
	"github.com/sluice-dev/sluice/internal/ledger"
)

// Who and what the samples name.
const (
	organization = "acme"
	appName      = "sluice-demo"
	namespace    = "labs"
	projectName  = "lab1"
	source       = organization + "/lab1-source"
	distribution = organization + "/lab1-squashed"
	// staff pushes to the source; people work downstream.
	staff = "ada"
)

var (
	branches = []string{"main", "hints"}
	made     = []string{"r01", "r02", "r03", "r04"}
	adopted  = []string{"team-blue", "team-green"}
)

// downstream are the repositories by recipient.
func downstream() map[string]string {
	m := map[string]string{}
	for _, r := range made {
		m[r] = organization + "/lab1-" + r
	}
	for _, r := range adopted {
		m[r] = organization + "/" + r
	}
	return m
}

// story is the demo's plot and what it knows.
type story struct {
	*teller
	*parts
	watch *watch

	// token is staff's, for git.
	token string
	appID int64
	// total sums up what the passes came to.
	total v1alpha1.Outcomes
}

// play plays the story to its end and returns the first thing that differed.
func (s *story) play(ctx context.Context) error {
	watch, err := newWatch(ctx, s.cluster.Config)
	if err != nil {
		return fmt.Errorf("watching the objects: %w", err)
	}
	s.watch = watch
	for _, chapter := range []func(context.Context) error{
		s.seed, s.apply, s.publish, s.firstPush, s.firstSync, s.peopleAct, s.secondSync, s.nothingNew, s.checkAudit, s.end,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// seed makes the organization, the App and the source on GitHub.
func (s *story) seed(ctx context.Context) error {
	s.chapter("On GitHub: an organization, a GitHub App, a source repository")
	if err := s.github.Organization(ctx, organization); err != nil {
		return err
	}
	var err error
	if s.token, err = s.github.User(ctx, staff); err != nil {
		return err
	}
	// An owner reads and writes every repository of the organization.
	if err := s.github.Member(ctx, organization, staff, "admin"); err != nil {
		return err
	}
	app, err := s.github.App(ctx, githubsim.AppRequest{Slug: appName, Owner: organization})
	if err != nil {
		return err
	}
	if err := s.github.Install(ctx, app.ID, organization); err != nil {
		return err
	}
	s.appID = app.ID
	s.say("App %s (id %d) is installed on %s", appName, app.ID, organization)
	if _, err := s.github.Repository(ctx, source); err != nil {
		return err
	}
	repository, what, err := newSource(ctx, s.root, filepath.Join(s.dir, "data"))
	if err != nil {
		return fmt.Errorf("making the source: %w", err)
	}
	if err := repository.push(ctx, s.github.GitURL(source, s.token), branches...); err != nil {
		return fmt.Errorf("pushing the source: %w", err)
	}
	s.say("%s pushed %s: %s", staff, source, what)
	return s.install(ctx, app)
}

// install makes the operator's namespace and Secrets, starts it, and tells
// GitHub where webhooks go.
func (s *story) install(ctx context.Context, app githubsim.AppReply) error {
	s.chapter("On Kubernetes: the operator and its Secrets")
	answer, err := s.cluster.Kubectl(ctx, "create", "namespace", resourceNamespace)
	if err != nil {
		return err
	}
	s.show("kubectl create namespace "+resourceNamespace, answer)
	hookSecret := rand.Text()
	values := map[string]map[string]any{
		"sluice-demo-key":     {"privateKey": app.PrivateKey},
		"sluice-demo-webhook": {"webhookSecret": hookSecret},
	}
	if err := s.applySample(ctx, "secrets.example.yaml", "   # with the App's key, and a webhook secret made now", func(u *unstructured.Unstructured) error {
		value, known := values[u.GetName()]
		if !known {
			return fmt.Errorf("the demo knows no value for Secret %s", u.GetName())
		}
		return set(u, value, "stringData")
	}); err != nil {
		return err
	}
	if err := s.startOperator(ctx, s.teller); err != nil {
		return err
	}
	hook := s.receiverURL + "/webhooks/" + appName
	s.say("webhooks of the App go to %s", hook)
	return s.github.Hook(ctx, app.ID, hook, hookSecret)
}

// apply applies the samples and waits for the distribution.
func (s *story) apply(ctx context.Context) error {
	s.chapter("Apply the samples, the project as a draft: it builds the distribution and reaches nobody")
	if err := s.applySample(ctx, "namespace.yaml", "", nil); err != nil {
		return err
	}
	if err := s.applySample(ctx, "githubapp.yaml", fmt.Sprintf("   # with appID %d, baseURL %s", s.appID, s.github.URL), func(u *unstructured.Unstructured) error {
		return errors.Join(set(u, s.appID, "spec", "appID"), set(u, s.github.URL, "spec", "baseURL"))
	}); err != nil {
		return err
	}
	var ready string
	if err := s.await(ctx, "the GitHubApp to be Ready", func() bool {
		ready = messageOf(s.watch.app.Status.Conditions, v1alpha1.ConditionReady)
		return isTrue(s.watch.app.Status.Conditions, v1alpha1.ConditionReady)
	}); err != nil {
		return err
	}
	s.say("the GitHubApp is Ready: %s", ready)
	if err := s.applySample(ctx, "projectsync.yaml", "   # with stage Draft", func(u *unstructured.Unstructured) error {
		return set(u, string(v1alpha1.StageDraft), "spec", "stage")
	}); err != nil {
		return err
	}
	if err := s.await(ctx, "the distribution to be built", func() bool {
		return isTrue(s.watch.project.Status.Conditions, v1alpha1.ConditionDistributionBuilt) && s.watch.current()
	}); err != nil {
		return err
	}
	reason, found := s.watch.sawInProgress(0)
	if !found {
		return errors.New("kstatus was never InProgress while the distribution was built")
	}
	s.say("the distribution is built: %s (kstatus: InProgress/%s, then Current)", messageOf(s.project().Status.Conditions, v1alpha1.ConditionDistributionBuilt), reason)
	dist, err := s.github.Look(ctx, distribution)
	if err != nil {
		return err
	}
	if !dist.Private || len(dist.Refs) != len(branches) {
		return fmt.Errorf("%s is to be private with the branches %v; private: %t, refs: %v", distribution, branches, dist.Private, dist.Refs)
	}
	return s.kubectl(ctx, "get", "githubapps,psync", "-A")
}

// publish makes the two repositories that exist before the project does, and
// publishes.
func (s *story) publish(ctx context.Context) error {
	s.chapter("Two teams work with the first state already; publish to them and to four new repositories")
	clone, err := newGitRepository(ctx, filepath.Join(s.dir, "data", "teams.git"))
	if err != nil {
		return err
	}
	if _, err := clone.git(ctx, "fetch", "--quiet", s.github.GitURL(distribution, s.token), "+refs/heads/*:refs/heads/*"); err != nil {
		return fmt.Errorf("cloning the distribution as %s: %w", staff, err)
	}
	own, err := clone.addFile(ctx, "main", "TEAM.md", "We are team green.\n", "Say who we are")
	if err != nil {
		return err
	}
	for _, team := range adopted {
		if _, err := s.github.Repository(ctx, organization+"/"+team); err != nil {
			return err
		}
		push := []string{"main", "hints"}
		what := "the first state"
		if team == "team-green" {
			push[0], what = own+":refs/heads/main", "the first state and a commit of its own"
		}
		if err := clone.push(ctx, s.github.GitURL(organization+"/"+team, s.token), push...); err != nil {
			return fmt.Errorf("making %s: %w", team, err)
		}
		s.say("%s/%s exists, with %s", organization, team, what)
	}
	if err := s.patchProject(ctx, map[string]any{"stage": v1alpha1.StagePublished}); err != nil {
		return err
	}
	if err := s.await(ctx, "all repositories to be provisioned", func() bool {
		for recipient := range downstream() {
			r, exists := s.watch.children[recipient]
			if !exists || !isTrue(r.Status.Conditions, v1alpha1.ConditionReady) || !isTrue(r.Status.Conditions, v1alpha1.ConditionProvisioned) {
				return false
			}
		}
		r := s.watch.project.Status.Repositories
		return r != nil && int(r.Live) == len(downstream()) && s.watch.current()
	}); err != nil {
		return err
	}
	if err := s.checkProvisioned(ctx); err != nil {
		return err
	}
	s.say("%d repositories were made from the distribution, %d were adopted as they were", len(made), len(adopted))
	return s.kubectl(ctx, "get", "psync,rrec", "-n", namespace)
}

// checkProvisioned compares every repository with the distribution.
func (s *story) checkProvisioned(ctx context.Context) error {
	dist, err := s.github.Look(ctx, distribution)
	if err != nil {
		return err
	}
	for recipient, name := range downstream() {
		l, err := s.github.Look(ctx, name)
		if err != nil {
			return err
		}
		reason := reasonOf(s.child(recipient).Status.Conditions, v1alpha1.ConditionProvisioned)
		if isAdopted := slices.Contains(adopted, recipient); isAdopted != (reason == v1alpha1.ReasonAdopted) {
			return fmt.Errorf("%s: Provisioned says %s, adopted: %t", name, reason, isAdopted)
		}
		if slices.Contains(made, recipient) && (!l.Private || l.DefaultBranch != "main" || !maps.Equal(l.Refs, dist.Refs)) {
			return fmt.Errorf("%s was not made from the distribution: private %t, default branch %s, refs %v instead of %v", name, l.Private, l.DefaultBranch, l.Refs, dist.Refs)
		}
		if len(l.Pulls) != 0 {
			return fmt.Errorf("%s has pull requests before the first sync", name)
		}
	}
	return nil
}

// firstPush pushes to the source and waits for the mark.
func (s *story) firstPush(ctx context.Context) error {
	s.chapter("%s pushes to the source; the signed webhook marks the project ahead", staff)
	if err := s.pushSource(ctx, "main", "Explain the task", map[string]string{"TASK.md": "# Task\n\nMake the tests pass.\n"}, "1 commit"); err != nil {
		return err
	}
	return s.pushSource(ctx, "hints", "More hints", map[string]string{"HINTS.md": "# Hints\n\nRead the tests first, then the task.\n"}, "2 commits")
}

// pushSource commits to the source as staff and waits until the project says
// how far ahead the source is.
func (s *story) pushSource(ctx context.Context, branch, message string, files map[string]string, ahead string) error {
	sha, err := s.github.Commit(ctx, source, branch, staff, message, files)
	if err != nil {
		return err
	}
	s.say("%s pushed %s to %s of the source", staff, sha[:7], branch)
	if err := s.await(ctx, "the source to be ahead by "+ahead, func() bool {
		return s.watch.project.Status.AheadBy == ahead && isTrue(s.watch.project.Status.Conditions, v1alpha1.ConditionSourceAhead)
	}); err != nil {
		return err
	}
	s.say("the project is ahead: %s; next action: %s", ahead, s.project().Status.NextAction)
	return nil
}

// firstSync asks for a sync: every repository gets one pull request per
// branch.
func (s *story) firstSync(ctx context.Context) error {
	s.chapter("Ask for a sync: one pull request per repository and branch")
	if err := s.sync(ctx, "demo-1", v1alpha1.Outcomes{Opened: 6}, true); err != nil {
		return err
	}
	return s.checkPulls(ctx, func(_, _ string) expected { return expected{pulls: 1} })
}

// peopleAct lets people merge.
func (s *story) peopleAct(ctx context.Context) error {
	s.chapter("People act: r01 merges main, r02 merges both branches, the others leave them open")
	for _, m := range []struct{ recipient, branch string }{{"r01", "main"}, {"r02", "main"}, {"r02", "hints"}} {
		if err := s.merge(ctx, m.recipient, m.branch); err != nil {
			return err
		}
	}
	return nil
}

// merge merges a repository's open pull request and waits until its
// RepoReconcile says so.
func (s *story) merge(ctx context.Context, recipient, branch string) error {
	name := downstream()[recipient]
	l, err := s.github.Look(ctx, name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(l.Pulls, func(p githubsim.LookPull) bool { return p.Base == branch && p.State == "open" })
	if i < 0 {
		return fmt.Errorf("%s has no open pull request onto %s to merge", name, branch)
	}
	number := l.Pulls[i].Number
	if _, err := s.github.Merge(ctx, name, number, "merge", recipient); err != nil {
		return err
	}
	if err := s.await(ctx, fmt.Sprintf("the RepoReconcile of %s to say that #%d is merged", recipient, number), func() bool {
		return slices.ContainsFunc(s.watch.children[recipient].Status.PullRequests, func(p v1alpha1.PullRequestStatus) bool {
			return p.Branch == branch && int(p.Number) == number && p.State == "Merged"
		})
	}); err != nil {
		return err
	}
	s.say("%s merged #%d onto %s; its RepoReconcile says Merged", recipient, number, branch)
	return nil
}

// secondSync brings more: open pull requests are updated and commented on,
// merged ones are followed by new ones.
func (s *story) secondSync(ctx context.Context) error {
	s.chapter("%s pushes again, and asks for a second sync: open pull requests are updated, merged ones are followed by new ones", staff)
	if err := s.pushSource(ctx, "main", "Correct the task", map[string]string{"TASK.md": "# Task\n\nMake all tests pass.\n"}, "1 commit"); err != nil {
		return err
	}
	if err := s.sync(ctx, "demo-2", v1alpha1.Outcomes{Opened: 2, Updated: 4}, true); err != nil {
		return err
	}
	return s.checkPulls(ctx, func(recipient, branch string) expected {
		switch {
		case branch == "hints":
			return expected{pulls: 1, closed: recipient == "r02"}
		case recipient == "r01" || recipient == "r02":
			return expected{pulls: 2}
		}
		return expected{pulls: 1, comments: 1}
	})
}

// nothingNew asks once more: no repository is written to.
func (s *story) nothingNew(ctx context.Context) error {
	s.chapter("r03 merges everything; a third sync with nothing new touches no repository")
	for _, branch := range branches {
		if err := s.merge(ctx, "r03", branch); err != nil {
			return err
		}
	}
	before, err := s.looks(ctx)
	if err != nil {
		return err
	}
	if err := s.github.Flush(ctx); err != nil {
		return err
	}
	if _, err := s.github.TakeRequests(ctx); err != nil {
		return err
	}
	if err := s.sync(ctx, "demo-3", v1alpha1.Outcomes{Updated: 5, UpToDate: 1}, false); err != nil {
		return err
	}
	after, err := s.looks(ctx)
	if err != nil {
		return err
	}
	for name := range before {
		if !reflect.DeepEqual(before[name], after[name]) {
			return fmt.Errorf("%s changed although nothing was new:\nbefore %+v\nafter  %+v", name, before[name], after[name])
		}
	}
	requests, err := s.github.TakeRequests(ctx)
	if err != nil {
		return err
	}
	for _, r := range requests {
		if writes(r) {
			return fmt.Errorf("%s %s was sent to GitHub although nothing was new", r.Method, r.Path)
		}
	}
	s.say("no push, no comment, no new pull request: all %d requests to GitHub were reads", len(requests))
	return nil
}

// writes reports whether a request changes anything on GitHub. Tokens are
// taken, and git reads, by POST too.
func writes(r githubsim.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasSuffix(r.Path, "/access_tokens") && !strings.HasSuffix(r.Path, "/git-upload-pack")
}

// sync asks for a sync with a new token and waits until its pass has ended
// with the counts that the story promises.
func (s *story) sync(ctx context.Context, token string, want v1alpha1.Outcomes, progress bool) error {
	since := s.watch.at()
	if err := s.patchProject(ctx, map[string]any{"sync": map[string]any{"request": token, "requestedBy": staff}}); err != nil {
		return err
	}
	if err := s.await(ctx, "the pass of "+token+" to end", func() bool {
		sync := s.watch.project.Status.Sync
		return sync != nil && sync.InProgress == nil && sync.LastCompleted != nil && sync.LastCompleted.Token == token && s.watch.current()
	}); err != nil {
		return err
	}
	p := s.project()
	got := p.Status.Sync.LastCompleted.Counts
	add(&s.total, got)
	if got != want {
		return fmt.Errorf("the pass of %s came to %s, not to %s\n%s", token, counts(got), counts(want), s.watch.explain())
	}
	if p.Status.AheadBy != "" {
		return fmt.Errorf("the project is still ahead by %s after the sync", p.Status.AheadBy)
	}
	reason, found := s.watch.sawInProgress(since)
	if progress && !found {
		return fmt.Errorf("kstatus was never InProgress during the pass of %s", token)
	}
	how := "Current"
	if found {
		how = "InProgress/" + reason + ", then Current"
	}
	s.say("the pass of %s ended: %s; no longer ahead (kstatus: %s)", token, counts(got), how)
	return nil
}

// expected is what the story promises of a repository's branch.
type expected struct {
	// pulls is how many pull requests there are; the last is open unless
	// closed, all others are merged.
	pulls    int
	closed   bool
	comments int // on the last
}

// checkPulls compares the pull requests of every repository and branch with
// what the story promises.
func (s *story) checkPulls(ctx context.Context, want func(recipient, branch string) expected) error {
	looks, err := s.looks(ctx)
	if err != nil {
		return err
	}
	heads, err := s.github.Look(ctx, distribution)
	if err != nil {
		return err
	}
	open := 0
	for _, recipient := range slices.Sorted(maps.Keys(downstream())) {
		name := downstream()[recipient]
		total := 0
		for _, branch := range branches {
			var onto []githubsim.LookPull
			for _, p := range looks[name].Pulls {
				if p.Base == branch {
					onto = append(onto, p)
				}
			}
			w := want(recipient, branch)
			if err := checkBranch(onto, branch, heads.Refs["refs/heads/"+branch], w); err != nil {
				return fmt.Errorf("%s, %s: %w", name, branch, err)
			}
			total += len(onto)
			if !w.closed {
				open++
				last := onto[len(onto)-1]
				s.say("%s #%d %q onto %s, comments: %d", name, last.Number, last.Title, branch, len(last.Comments))
			}
		}
		if total != len(looks[name].Pulls) {
			return fmt.Errorf("%s has pull requests onto other branches: %+v", name, looks[name].Pulls)
		}
	}
	s.say("%d pull requests are open, exactly one per repository and branch that differs", open)
	return nil
}

// checkBranch compares the pull requests onto one branch.
func checkBranch(list []githubsim.LookPull, branch, head string, want expected) error {
	if len(list) != want.pulls {
		return fmt.Errorf("there are %d pull requests, not %d: %+v", len(list), want.pulls, list)
	}
	for i, p := range list {
		state := "merged"
		if i == len(list)-1 && !want.closed {
			state = "open"
		}
		if p.State != state || p.Head != "sync/"+branch || p.Author != appName+"[bot]" || !slices.Contains(p.Labels, "lab-update") {
			return fmt.Errorf("pull request #%d is to be %s, from sync/%s, by %s[bot], labelled lab-update: %+v", p.Number, state, branch, appName, p)
		}
		if text := p.Title + p.Body + strings.Join(p.Comments, ""); strings.Contains(text, source) {
			return fmt.Errorf("pull request #%d names the source: %s", p.Number, text)
		}
	}
	last := list[len(list)-1]
	if len(last.Comments) != want.comments {
		return fmt.Errorf("pull request #%d has %d comments, not %d: %q", last.Number, len(last.Comments), want.comments, last.Comments)
	}
	if !want.closed && last.HeadSHA != head {
		return fmt.Errorf("pull request #%d brings %s, not the distribution's %s", last.Number, last.HeadSHA, head)
	}
	return nil
}

// looks returns what every downstream repository and the distribution hold.
func (s *story) looks(ctx context.Context) (map[string]githubsim.Look, error) {
	m := map[string]githubsim.Look{}
	for _, name := range append(slices.Collect(maps.Values(downstream())), distribution) {
		l, err := s.github.Look(ctx, name)
		if err != nil {
			return nil, err
		}
		m[name] = l
	}
	return m, nil
}

// checkAudit reads the audit log from Postgres.
func (s *story) checkAudit(ctx context.Context) error {
	s.chapter("What the audit log in Postgres says")
	db, err := ledger.Open(ctx, s.dsn, ledger.Options{Logger: logr.Discard()})
	if err != nil {
		return err
	}
	defer db.Close()
	project, err := db.ProjectByUID(ctx, string(s.project().UID))
	if err != nil {
		return err
	}
	entries, err := db.AuditEntries(ctx, project.ID)
	if err != nil {
		return err
	}
	got := map[string]int{}
	for _, e := range entries {
		got[e.Action]++
		payload, err := json.Marshal(e.Payload)
		if err != nil {
			return err
		}
		s.line(fmt.Sprintf("    %s  %-22s by %-16s %s", e.At.UTC().Format("15:04:05"), e.Action, e.Actor, payload))
	}
	for action, n := range map[string]int{"project.create": 1, "project.sync_requested": 3, "project.synced": 3} {
		if got[action] != n {
			return fmt.Errorf("the audit log holds %d entries %s, not %d", got[action], action, n)
		}
	}
	return nil
}

// end shows how things are at the end.
func (s *story) end(ctx context.Context) error {
	s.chapter("How it is now: what is out, who has it, who has not")
	if err := s.kubectl(ctx, "describe", "psync", projectName, "-n", namespace); err != nil {
		return err
	}
	if err := s.await(ctx, "kstatus to be Current", s.watch.current); err != nil {
		return err
	}
	var history []string
	s.watch.mu.Lock()
	for _, h := range s.watch.history {
		text := string(h.status)
		if h.reason != "" {
			text += "/" + h.reason
		}
		history = append(history, text)
	}
	s.watch.mu.Unlock()
	s.say("kstatus of the ProjectSync over the story: %s", strings.Join(history, ", "))
	if p := s.project(); reasonOf(p.Status.Conditions, v1alpha1.ConditionSynced) != v1alpha1.ReasonSucceeded {
		return fmt.Errorf("at the end Synced is to be True/%s: %v", v1alpha1.ReasonSucceeded, sayConditions(&p))
	}
	if err := s.kubectl(ctx, "get", "psync,rrec", "-n", namespace, "-o", "wide"); err != nil {
		return err
	}
	return s.checkSimulator()
}

// checkSimulator makes sure that every answer of the simulated GitHub was one
// that GitHub's own description allows: else the story proves nothing.
func (s *story) checkSimulator() error {
	log, err := os.ReadFile(filepath.Join(s.dir, "logs", "githubsim.log"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "an answer GitHub would not give") {
			return errors.New(strings.TrimSpace(line))
		}
	}
	return nil
}

// leaveRunning tells how to use what runs, and waits for Ctrl-C.
func (s *story) leaveRunning(ctx context.Context) {
	s.chapter("Everything is left running until Ctrl-C")
	s.line("    export KUBECONFIG=" + s.kubeconfig)
	s.line("    export SLUICE_DATABASE_URL='" + s.dsn + "'")
	s.line("    GitHub:   " + s.github.URL)
	s.line("    webhooks: " + s.receiverURL + "/webhooks/" + appName)
	s.line("    logs:     " + filepath.Join(s.dir, "logs"))
	s.line("  Push to the source as " + staff + ":")
	s.line("    git clone " + s.github.GitURL(source, s.token))
	s.line("  Ask for a sync:")
	s.line("    kubectl -n " + namespace + " patch psync " + projectName + ` --type=merge -p '{"spec":{"sync":{"request":"'"$(date)"'"}}}'`)
	s.line("  Merge a pull request as its recipient:")
	s.line("    curl -d '" + `{"repository":"acme/lab1-r04","number":1,"method":"merge","login":"r04"}` + "' " + s.github.URL + "/_sim/merge")
	<-ctx.Done()
}

// await is the watch's.
func (s *story) await(ctx context.Context, what string, done func() bool) error {
	return s.watch.await(ctx, what, done)
}

// project returns the ProjectSync as seen last.
func (s *story) project() v1alpha1.ProjectSync {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	return *s.watch.project.DeepCopy()
}

// child returns a recipient's RepoReconcile as seen last.
func (s *story) child(recipient string) v1alpha1.RepoReconcile {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	r := s.watch.children[recipient]
	return *r.DeepCopy()
}

// patchProject changes the ProjectSync's spec as a user does.
func (s *story) patchProject(ctx context.Context, spec map[string]any) error {
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	answer, err := s.cluster.Kubectl(ctx, "-n", namespace, "patch", "psync", projectName, "--type=merge", "-p", string(patch))
	if err != nil {
		return err
	}
	s.show(fmt.Sprintf("kubectl -n %s patch psync %s --type=merge -p '%s'", namespace, projectName, patch), answer)
	return nil
}

// kubectl runs kubectl and shows what it answered.
func (s *story) kubectl(ctx context.Context, args ...string) error {
	answer, err := s.cluster.Kubectl(ctx, args...)
	if err != nil {
		return err
	}
	s.show("kubectl "+strings.Join(args, " "), answer)
	return nil
}

func isTrue(conditions []metav1.Condition, t string) bool {
	return meta.IsStatusConditionTrue(conditions, t)
}

func messageOf(conditions []metav1.Condition, t string) string {
	if c := meta.FindStatusCondition(conditions, t); c != nil {
		return c.Message
	}
	return ""
}

func reasonOf(conditions []metav1.Condition, t string) string {
	if c := meta.FindStatusCondition(conditions, t); c != nil {
		return c.Reason
	}
	return ""
}

// sayConditions returns an object's conditions as lines.
func sayConditions(o interface{ GetConditions() []metav1.Condition }) []string {
	var lines []string
	for _, c := range o.GetConditions() {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return lines
}

func add(sum *v1alpha1.Outcomes, o v1alpha1.Outcomes) {
	sum.Opened += o.Opened
	sum.Updated += o.Updated
	sum.UpToDate += o.UpToDate
	sum.Held += o.Held
	sum.Skipped += o.Skipped
	sum.Failed += o.Failed
}

func counts(o v1alpha1.Outcomes) string {
	return fmt.Sprintf("%d opened, %d updated, %d up to date, %d held, %d skipped, %d failed", o.Opened, o.Updated, o.UpToDate, o.Held, o.Skipped, o.Failed)
}
