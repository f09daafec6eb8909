// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

// Repositories do not hold each other up, and nothing is lost or mixed up when
// many are worked on at once.
func TestManyRepositoriesAtOnce(t *testing.T) {
	const repositories, workers = 40, 8
	s := newSim(t)
	r := newReceiver(s)
	s.repository("acme/source")
	dir := s.clone("acme/source", s.token())
	head := s.write(dir, "a.txt", "a\n")
	token := s.token()
	if got := r.take(s); len(got) == 0 {
		t.Fatal("no webhooks")
	}

	work := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range work {
				name := fmt.Sprintf("acme/r%02d", i)
				if made := s.call(token, "POST", "/orgs/acme/repos", map[string]any{"name": name[5:], "private": true}); made.status != 201 {
					t.Errorf("%s: %d %s", name, made.status, made.raw)
					continue
				}
				if o := s.git(dir, "push", "-q", s.GitURL(name, token), "HEAD~1:refs/heads/main", "HEAD:refs/heads/sync/main"); o.failed {
					t.Errorf("%s: %s", name, o.out)
					continue
				}
				compared := s.call(token, "GET", "/repos/"+name+"/compare/main...sync%2Fmain?per_page=1", nil)
				opened := s.call(token, "POST", "/repos/"+name+"/pulls", map[string]string{"title": "t", "head": "sync/main", "base": "main"})
				if compared.status != 200 || opened.status != 201 {
					t.Errorf("%s: %d %d", name, compared.status, opened.status)
				}
			}
		}()
	}
	for i := range repositories {
		work <- i
	}
	close(work)
	group.Wait()
	for i := range repositories {
		p := s.pull(fmt.Sprintf("acme/r%02d", i))
		s.Expect([]any{p.State, p.HeadSHA}).To(Equal([]any{"open", head}))
	}
	counts := map[string]int{}
	for _, name := range names(r.take(s)) {
		counts[name]++
	}
	s.Expect(counts).To(Equal(map[string]int{"repository/created": repositories, "push": 2 * repositories, "create": 2 * repositories, "pull_request/opened": repositories}))
}

// Of several pushes of one branch from the same old value, one wins.
func TestOneOfManyPushesWins(t *testing.T) {
	s := newSim(t)
	_, first := s.repository(lab)
	token := s.writer("ada")
	dir := s.clone(lab, token)
	var heads []string
	for i := range 6 {
		s.mustGit(dir, "checkout", "-q", "-B", fmt.Sprint("b", i), first)
		heads = append(heads, s.write(dir, "f", strings.Repeat("x", i+1)))
	}
	outcomes := make([]gitOutcome, len(heads))
	var group sync.WaitGroup
	for i, head := range heads {
		group.Add(1)
		go func() {
			defer group.Done()
			outcomes[i] = s.git(dir, "push", "--force-with-lease=main:"+first, s.GitURL(lab, token), head+":refs/heads/main")
		}()
	}
	group.Wait()
	won := 0
	for _, o := range outcomes {
		if !o.failed {
			won++
			continue
		}
		s.Expect(o.out).To(Or(ContainSubstring("stale info"), ContainSubstring("cannot lock ref 'refs/heads/main': is at ")))
	}
	s.Expect(won).To(Equal(1))
}
