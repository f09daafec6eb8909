// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// projectSpec turns a ProjectSync's spec into what the engine works by.
func projectSpec(p *v1alpha1.ProjectSync) domain.ProjectSpec {
	s := p.Spec
	out := domain.ProjectSpec{
		UID: string(p.UID), Object: domain.ObjectKey{Namespace: p.Namespace, Name: p.Name}, App: s.AppRef.Name,
		Stage: domain.Stage(s.Stage), Suspended: s.Suspend, Source: s.Source.Repository, History: domain.History(s.Source.History),
		OverlayDirectory: string(s.Source.OverlayDirectory), IgnoreFile: string(s.Source.IgnoreFile),
		Organization: organization(p), DeadlineAt: at(s.Deadline), Concurrency: 4,
		PullRequest: domain.PullRequestSettings{BranchPrefix: v1alpha1.DefaultBranchPrefix},
	}
	for _, b := range s.Source.Branches {
		out.Branches = append(out.Branches, string(b))
	}
	out.Distribution = domain.Owner(s.Source.Repository) + "/" + domain.DefaultDistributionName(p.Name, out.History)
	if s.Distribution != nil && s.Distribution.Repository != "" {
		out.Distribution, out.DistributionFixed = s.Distribution.Repository, true
	}
	if s.Repositories != nil && s.Repositories.Provision != nil {
		out.Provision = &domain.Provision{Visibility: s.Repositories.Provision.Visibility, Permission: s.Repositories.Provision.Permission}
	}
	if pr := s.PullRequest; pr != nil {
		out.PullRequest = domain.PullRequestSettings{Title: pr.Title, Body: pr.Body, Labels: pr.Labels, Draft: pr.Draft, Announce: pr.Announce, BranchPrefix: pr.BranchPrefix}
	}
	if s.Sync != nil && s.Sync.Concurrency > 0 {
		out.Concurrency = int(s.Sync.Concurrency)
	}
	return out
}

// organization is where repositories are made: the source's owner unless the
// spec names another.
func organization(p *v1alpha1.ProjectSync) string {
	if r := p.Spec.Repositories; r != nil && r.Organization != "" {
		return string(r.Organization)
	}
	return domain.Owner(p.Spec.Source.Repository)
}

func at(d *v1alpha1.Deadline) *time.Time {
	if d == nil || d.At == nil {
		return nil
	}
	t := d.At.Time
	return &t
}

// recipients turns the list into the engine's, with every repository's full
// name.
func recipients(p *v1alpha1.ProjectSync) []domain.Recipient {
	r := p.Spec.Repositories
	if r == nil {
		return nil
	}
	list := make([]domain.Recipient, 0, len(r.List))
	for _, e := range r.List {
		out := domain.Recipient{Name: e.Recipient, FullName: e.Repository, Adopt: e.Repository != "", DeadlineAt: at(e.Deadline), Exclude: e.Exclude, Test: e.Test}
		for _, m := range e.Members {
			out.Members = append(out.Members, string(m.Login))
		}
		if !out.Adopt {
			name := e.Recipient
			if r.Provision != nil {
				name = domain.Render(r.Provision.NameTemplate, map[string]string{"recipient": e.Recipient, "project": p.Name})
			}
			out.FullName = organization(p) + "/" + name
		}
		list = append(list, out)
	}
	return list
}

// validate finds what the API server cannot: templates with unknown fields,
// names that are not legal, and repositories listed twice. Its faults are
// Terminal: only a change of the spec ends them.
func validate(p *v1alpha1.ProjectSync) error {
	if err := validateTemplates(p); err != nil {
		return err
	}
	list := recipients(p)
	byName := map[string][]string{}
	for _, e := range list {
		if !e.Adopt && p.Spec.Repositories.Provision == nil {
			return fault.New(fault.Terminal, fault.ReasonNotProvisioned,
				"spec.repositories.list entry %q names no repository and spec.repositories.provision is absent: add one of them", e.Name)
		}
		if err := domain.LegalRepositoryName(domain.Name(e.FullName)); err != nil {
			return fault.New(fault.Terminal, fault.ReasonInvalidNameTemplate, "spec.repositories.list entry %q: %s", e.Name, err)
		}
		k := strings.ToLower(e.FullName)
		byName[k] = append(byName[k], fmt.Sprintf("%q", e.Name))
	}
	var twice []string
	for name, entries := range byName {
		if len(entries) > 1 {
			twice = append(twice, fmt.Sprintf("%s by %s", name, strings.Join(entries, " and ")))
		}
	}
	if len(twice) > 0 {
		sort.Strings(twice)
		return fault.New(fault.Terminal, fault.ReasonDuplicateRepositories, "spec.repositories.list names a repository more than once: %s: keep one entry each", strings.Join(twice, "; "))
	}
	return nil
}

func validateTemplates(p *v1alpha1.ProjectSync) error {
	check := func(field, text string, fields []string) error {
		if err := domain.CheckTemplate(text, fields); err != nil {
			return fault.New(fault.Terminal, fault.ReasonInvalidNameTemplate, "%s: %s", field, err)
		}
		return nil
	}
	if r := p.Spec.Repositories; r != nil && r.Provision != nil {
		if err := check("spec.repositories.provision.nameTemplate", r.Provision.NameTemplate, domain.NameTemplateFields); err != nil {
			return err
		}
	}
	if pr := p.Spec.PullRequest; pr != nil {
		if err := check("spec.pullRequest.title", pr.Title, domain.TitleTemplateFields); err != nil {
			return err
		}
		return check("spec.pullRequest.body", pr.Body, domain.BodyTemplateFields)
	}
	return nil
}

// tokens returns the sync requests the object carries, the annotation's last:
// of two new ones at once it wins.
func tokens(p *v1alpha1.ProjectSync) []domain.Token {
	var list []domain.Token
	if p.Spec.Sync != nil && p.Spec.Sync.Request != "" {
		list = append(list, domain.Token{Source: domain.TokenSpec, Value: p.Spec.Sync.Request, RequestedBy: p.Spec.Sync.RequestedBy})
	}
	if v := p.Annotations[v1alpha1.SyncRequestedAtAnnotation]; v != "" {
		list = append(list, domain.Token{Source: domain.TokenAnnotation, Value: v})
	}
	return list
}

// firstAnswer is what a token just seen is answered with. One that status
// already answers is not run again when the database does not know it; one that
// came with the object is answered by the build.
func firstAnswer(p *v1alpha1.ProjectSync, v domain.ProjectView, t domain.Token) (a domain.Answer, reason, message string) {
	if s := p.Status.Sync; s != nil && s.LastRequest != nil && s.LastRequest.Token == t.Value && s.LastRequest.Source == string(t.Source) {
		return domain.AnswerRecovered, "", "answered before; the database did not know it"
	}
	switch {
	case v.Stage == domain.StageArchived:
		return domain.AnswerRefused, string(fault.ReasonProjectArchived), "the project is archived: set spec.stage to Published to sync it again"
	case !v.Built() && p.Generation <= 1:
		return domain.AnswerBuilt, "", "answered by the build of the distribution"
	case !v.Built():
		return domain.AnswerWaiting, string(fault.ReasonDistributionMissing), "waiting for the distribution to be built"
	case v.Suspended:
		return domain.AnswerWaiting, string(fault.ReasonSuspended), "waiting: spec.suspend is true"
	case v.ActivePass != nil:
		return domain.AnswerWaiting, string(fault.ReasonSyncInProgress), "waiting for the sync under way to end"
	}
	return domain.AnswerWaiting, "", ""
}

// stamp is a time as the API server keeps it, to the second: one that was
// stored equals the row it was made from.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

func timePointer(t *time.Time) *metav1.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	out := stamp(*t)
	return &out
}
