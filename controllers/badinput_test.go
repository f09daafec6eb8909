// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/githubsim/simtest"
	"github.com/sluice-dev/sluice/internal/testenv/pgtest"
)

// ready waits until a GitHubApp's Ready condition is as given, and returns its
// message.
func (w *world) appReady(want string) string {
	w.t.Helper()
	w.Eventually(func() string { return state(w.getApp().Status.Conditions, v1alpha1.ConditionReady) }).Should(Equal(want))
	return message(w.getApp().Status.Conditions, v1alpha1.ConditionReady)
}

func (w *world) projectReady(p *v1alpha1.ProjectSync, want string) string {
	w.t.Helper()
	w.Eventually(func() string { return state(w.get(p).Status.Conditions, v1alpha1.ConditionReady) }).Should(Equal(want))
	return message(w.get(p).Status.Conditions, v1alpha1.ConditionReady)
}

func TestGitHubAppNamesTheSecretItLacksAndRecovers(t *testing.T) {
	w := newWorld(t)
	w.create(w.app())
	w.Expect(w.appReady("False/SecretNotFound")).To(And(ContainSubstring(`"app-key"`), ContainSubstring(w.namespace)))

	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "app-key"}, Data: map[string][]byte{"other": w.gh.Key}})
	w.Expect(w.appReady("False/SecretKeyNotFound")).To(ContainSubstring(`"privateKey"`))

	var s corev1.Secret
	w.Expect(w.k8s.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "app-key"}, &s)).To(Succeed())
	s.Data = map[string][]byte{"privateKey": w.gh.Key}
	w.Expect(w.k8s.Update(w.ctx, &s)).To(Succeed())
	w.Expect(w.appReady("True/Succeeded")).To(ContainSubstring("sluice-demo[bot]"))
	w.Expect(w.getApp().Status.BotUserID).To(Equal(w.gh.BotUserID))
	w.Expect(state(w.getApp().Status.Conditions, v1alpha1.ConditionWebhookHealthy)).To(Equal("False/SecretNotFound"))
}

func TestGitHubAppRefusesAWrongKeyWithoutShowingIt(t *testing.T) {
	w := newWorld(t)
	other := simtest.NewFixture(t, w.gh.Client, "elsewhere", "another-app")
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "app-key"}, Data: map[string][]byte{"privateKey": other.Key}})
	w.create(w.app())
	said := w.appReady("False/CredentialsRefused")
	w.Expect(said).To(ContainSubstring("do not belong together"))
	secret := strings.Split(string(other.Key), "\n")[3]
	w.Expect(said).NotTo(ContainSubstring(secret))

	var s corev1.Secret
	w.Expect(w.k8s.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "app-key"}, &s)).To(Succeed())
	s.Data["privateKey"] = []byte("not a key")
	w.Expect(w.k8s.Update(w.ctx, &s)).To(Succeed())
	w.Expect(w.appReady("False/InvalidPrivateKey")).To(ContainSubstring("PEM"))
}

func TestSecondGitHubAppForTheSameAppIsStalled(t *testing.T) {
	w := newWorld(t)
	w.createApp()
	w.appReady("True/Succeeded")
	second := w.app()
	second.Name = w.name + "-two"
	w.create(second)
	w.Eventually(func() string {
		var now v1alpha1.GitHubApp
		if err := w.k8s.Get(w.ctx, client.ObjectKeyFromObject(second), &now); err != nil {
			return err.Error()
		}
		return state(now.Status.Conditions, v1alpha1.ConditionStalled) + " " + message(now.Status.Conditions, v1alpha1.ConditionStalled)
	}).Should(And(HavePrefix("True/DuplicateApp"), ContainSubstring(w.name)))
	w.appReady("True/Succeeded")
}

func TestProjectWithoutAGrantIsStalledAndSaysWhichIsMissing(t *testing.T) {
	w := newWorld(t)
	w.createSecrets()
	app := w.app()
	app.Spec.Grants[0].Downstream = []string{"acme/other-*"}
	w.create(app)
	w.seedSource()
	p := w.project(v1alpha1.StagePublished)
	w.create(p)
	w.Expect(w.projectReady(p, "False/NotGranted")).To(And(ContainSubstring("acme/lab1-r01"), ContainSubstring("downstream"), ContainSubstring(w.name)))
	w.Expect(state(w.get(p).Status.Conditions, v1alpha1.ConditionStalled)).To(Equal("True/NotGranted"))
	w.Expect(kstatusOf(w.get(p))).To(Equal(status.FailedStatus))

	now := w.getApp()
	now.Spec.Grants[0].Downstream = []string{"acme/lab1-*"}
	w.Expect(w.k8s.Update(w.ctx, now)).To(Succeed())
	w.projectReady(p, "True/Succeeded")
}

func TestMissingSourceBranchIsNamed_R_DIST_02(t *testing.T) {
	w := newWorld(t)
	w.createApp()
	w.seedSource()
	p := w.project(v1alpha1.StageDraft)
	p.Spec.Source.Branches = []v1alpha1.Branch{"main", "solutions"}
	w.create(p)
	said := w.projectReady(p, "False/SourceBranchMissing")
	w.Expect(said).To(ContainSubstring(`"solutions"`))
	w.Expect(said).NotTo(ContainSubstring(`"main"`))
	_, err := w.gh.Look(w.ctx, "acme/lab1-squashed")
	w.Expect(err).To(HaveOccurred(), "nothing is created before the checks")

	w.pushSource("solutions", "now it is there", map[string]string{"s.txt": "s\n"})
	w.projectReady(p, "True/Succeeded")
}

func TestDistributionIsNeverASource_R_DIST_03(t *testing.T) {
	w := newWorld(t)
	w.createApp()
	w.seedSource()
	_, err := w.gh.Repository(w.ctx, "acme/other-squashed")
	w.Expect(err).NotTo(HaveOccurred())
	w.pushTo("acme/other-squashed", "main")
	p := w.project(v1alpha1.StageDraft)
	p.Spec.Source = v1alpha1.Source{Repository: "acme/other-squashed", Branches: []v1alpha1.Branch{"main"}}
	w.create(p)
	w.Expect(w.projectReady(p, "False/SourceIsDistribution")).To(ContainSubstring("other-squashed"))
	w.Expect(state(w.get(p).Status.Conditions, v1alpha1.ConditionStalled)).To(Equal("True/SourceIsDistribution"))
}

func (w *world) pushTo(repository, branch string) {
	w.t.Helper()
	_, err := w.gh.Commit(w.ctx, repository, branch, "ada", "start", map[string]string{"a.txt": "a\n"})
	w.Expect(err).NotTo(HaveOccurred())
}

func TestEmptyLeftoverIsAdoptedAndATakenNameStepsToASuffix_R_DIST_05(t *testing.T) {
	t.Run("an empty private repository of that name is adopted", func(t *testing.T) {
		w := newWorld(t)
		id, err := w.gh.Repository(w.ctx, "acme/lab1-squashed")
		w.Expect(err).NotTo(HaveOccurred())
		w.createApp()
		w.seedSource()
		p := w.project(v1alpha1.StageDraft)
		w.create(p)
		w.projectReady(p, "True/Succeeded")
		w.Expect(w.get(p).Status.Distribution.RepositoryID).To(Equal(id))
	})
	t.Run("one with content is left alone", func(t *testing.T) {
		w := newWorld(t)
		_, err := w.gh.Repository(w.ctx, "acme/lab1-squashed")
		w.Expect(err).NotTo(HaveOccurred())
		w.pushTo("acme/lab1-squashed", "main")
		before, err := w.gh.Look(w.ctx, "acme/lab1-squashed")
		w.Expect(err).NotTo(HaveOccurred())
		w.createApp()
		w.seedSource()
		p := w.project(v1alpha1.StageDraft)
		w.create(p)
		w.projectReady(p, "True/Succeeded")
		w.Expect(w.get(p).Status.Distribution.Repository).To(Equal("acme/lab1-squashed-2"))
		after, err := w.gh.Look(w.ctx, "acme/lab1-squashed")
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(after).To(Equal(before))
	})
}

func TestRepositoryListedTwiceIsNamed(t *testing.T) {
	w := newWorld(t)
	w.createApp()
	w.seedSource()
	p := w.project(v1alpha1.StagePublished)
	p.Spec.Repositories.List = append(p.Spec.Repositories.List, v1alpha1.Recipient{Recipient: "again", Repository: "acme/LAB1-r02"})
	w.create(p)
	w.Expect(w.projectReady(p, "False/DuplicateRepositories")).To(And(ContainSubstring(`"r02"`), ContainSubstring(`"again"`)))
}

func TestAdoptedRepositoryThatIsNotThereIsNamedAndTheOthersGoOn_R_CORE_15(t *testing.T) {
	w := newWorld(t)
	w.createApp()
	w.seedSource()
	p := w.project(v1alpha1.StagePublished)
	p.Spec.Repositories.List = append(p.Spec.Repositories.List, v1alpha1.Recipient{Recipient: "team", Repository: "acme/team-one"})
	w.create(p)
	w.Eventually(func() string {
		return state(w.child(p, "team").Status.Conditions, v1alpha1.ConditionProvisioned)
	}).Should(Equal("False/RepositoryNotFound"))
	w.Eventually(func() int32 { return w.get(p).Status.Repositories.Live }).Should(BeEquivalentTo(3))

	_, err := w.gh.Repository(w.ctx, "acme/team-one")
	w.Expect(err).NotTo(HaveOccurred())
	w.Eventually(func() string {
		return state(w.child(p, "team").Status.Conditions, v1alpha1.ConditionProvisioned)
	}).Should(Equal("True/Adopted"))
}

func TestFieldsWithoutEffectAreSaid(t *testing.T) {
	w := newWorld(t)
	w.createApp()
	w.seedSource()
	p := w.project(v1alpha1.StageDraft)
	p.Spec.ProtectedFiles = []v1alpha1.FilePath{".github/workflows/grading.yml"}
	w.create(p)
	w.projectReady(p, "True/Succeeded")
	w.Expect(message(w.get(p).Status.Conditions, v1alpha1.ConditionFieldsIgnored)).To(ContainSubstring("spec.protectedFiles"))
}

func TestWorkersCommitsOnTheSyncBranchAreHeld_NothingIsOverwritten(t *testing.T) {
	w := newWorld(t)
	p := w.published()
	w.pushSource("main", "second", map[string]string{"src/a.txt": "a2\n"})
	w.Expect(w.request(p, "one")).To(Equal(v1alpha1.Outcomes{Opened: 3}))
	theirs, err := w.gh.Commit(w.ctx, "acme/lab1-r02", "sync/main", "r02", "my own change", map[string]string{"mine.txt": "mine\n"})
	w.Expect(err).NotTo(HaveOccurred())
	w.pushSource("main", "third", map[string]string{"src/a.txt": "a3\n"})
	w.Expect(w.request(p, "two")).To(Equal(v1alpha1.Outcomes{Updated: 2, Held: 1}))
	l, err := w.gh.Look(w.ctx, "acme/lab1-r02")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(l.Refs["refs/heads/sync/main"]).To(Equal(theirs))
	w.Expect(state(w.get(p).Status.Conditions, v1alpha1.ConditionSynced)).To(Equal("False/Held"))
	w.Expect(w.get(p).Status.AheadBy).NotTo(BeEmpty(), "held repositories keep the source ahead")
}

func TestArchivedRepositoryFailsAloneAndTheNextSyncReachesIt_R_SYNC_08_R_CLEAR_02(t *testing.T) {
	w := newWorld(t)
	p := w.published()
	w.pushSource("main", "second", map[string]string{"src/a.txt": "a2\n"})
	w.Eventually(func() string { return w.get(p).Status.AheadBy }).Should(Equal("1 commit"))
	w.Expect(w.gh.Archive(w.ctx, "acme/lab1-r03", true)).To(Succeed())
	w.Expect(w.request(p, "one")).To(Equal(v1alpha1.Outcomes{Opened: 2, Failed: 1}))
	now := w.get(p)
	w.Expect(now.Status.Failing).To(HaveLen(1))
	w.Expect(now.Status.Failing[0].Repository).To(Equal("acme/lab1-r03"))
	w.Expect(now.Status.Failing[0].Reason).To(Equal("RepositoryArchived"))
	w.Expect(now.Status.AheadBy).To(Equal("1 commit"), "a failed repository keeps the source ahead")
	w.Expect(state(now.Status.Conditions, v1alpha1.ConditionReady)).To(Equal("True/SomeRepositoriesFailed"))
	w.Expect(kstatusOf(now)).To(Equal(status.CurrentStatus), "one archived repository times nobody out")

	w.Expect(w.gh.Archive(w.ctx, "acme/lab1-r03", false)).To(Succeed())
	w.Expect(w.request(p, "two")).To(Equal(v1alpha1.Outcomes{Opened: 1, Updated: 2}))
	w.Expect(w.get(p).Status.AheadBy).To(BeEmpty())
}

func TestWithoutPostgresTheOperatorStaysUpSaysSoAndRecovers(t *testing.T) {
	server := pgtest.Dedicated(t)
	w := startWorld(t, dedicatedDatabase(t, server))
	p := w.published()
	server.Pause()
	w.change(p, func(p *v1alpha1.ProjectSync) { p.Spec.Sync = &v1alpha1.Sync{Concurrency: 2} })
	w.Expect(w.projectReady(p, "False/DatabaseUnavailable")).To(ContainSubstring(server.Address()))
	w.Expect(server.Resume(w.ctx)).To(Succeed())
	w.projectReady(p, "True/Succeeded")
	w.pushSource("main", "after the outage", map[string]string{"src/a.txt": "a9\n"})
	w.Expect(w.request(p, "one")).To(Equal(v1alpha1.Outcomes{Opened: 3}))
}

func TestDeletionPolicyPurgeRemovesRows_R_DIST_13(t *testing.T) {
	w := newWorld(t)
	w.createApp()
	w.seedSource()
	p := w.project(v1alpha1.StageDraft)
	p.Spec.DeletionPolicy = v1alpha1.DeletionPurge
	w.create(p)
	w.projectReady(p, "True/Succeeded")
	w.Expect(w.k8s.Delete(w.ctx, p)).To(Succeed())
	w.Eventually(func() error { return w.k8s.Get(w.ctx, client.ObjectKeyFromObject(p), &v1alpha1.ProjectSync{}) }).ShouldNot(Succeed())
	_, err := w.ledger.ProjectByUID(w.ctx, string(p.UID))
	w.Expect(err).To(HaveOccurred())
	_, err = w.gh.Look(w.ctx, "acme/lab1-squashed")
	w.Expect(err).NotTo(HaveOccurred(), "no repository is ever deleted (R-CORE-07)")
}

func TestPostgresUnreachableAtStartIsSaidAndRecovers(t *testing.T) {
	server := pgtest.Dedicated(t)
	dsn := dedicatedDatabase(t, server)
	server.Pause()
	w := startWorld(t, dsn)
	w.createApp()
	w.seedSource()
	p := w.project(v1alpha1.StageDraft)
	w.create(p)
	w.Expect(w.projectReady(p, "False/DatabaseUnavailable")).To(ContainSubstring(server.Address()))
	w.appReady("True/Succeeded")
	w.Expect(server.Resume(w.ctx)).To(Succeed())
	w.projectReady(p, "True/Succeeded")
}

// A project that was there before its App worked goes on as soon as it does.
func TestProjectGoesOnWhenItsAppBecomesReady(t *testing.T) {
	w := newWorld(t)
	w.seedSource()
	w.create(w.app())
	p := w.project(v1alpha1.StageDraft)
	w.create(p)
	w.projectReady(p, "False/AppNotReady")
	w.createSecrets()
	w.projectReady(p, "True/Succeeded")
}
