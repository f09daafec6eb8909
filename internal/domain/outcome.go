// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

// outcomeRank orders outcomes of branches: the repository's is the strongest
// (R-SYNC-07). Failed and Held outrank the good ones, because a repository of
// which one branch did not get the update has not got the update.
var outcomeRank = map[Outcome]int{
	OutcomeUpToDate: 1,
	OutcomeUpdated:  2,
	OutcomeOpened:   3,
	OutcomeHeld:     4,
	OutcomeFailed:   5,
}

// Strongest returns the outcome of a repository from its branches'. Without
// any branch it is UpToDate.
func Strongest(branches ...Outcome) Outcome {
	best := OutcomeUpToDate
	for _, o := range branches {
		if outcomeRank[o] > outcomeRank[best] {
			best = o
		}
	}
	return best
}

// Add returns the counts with one more repository of that outcome; an empty
// outcome (no turn yet) counts nowhere.
func (c Counts) Add(o Outcome) Counts {
	switch o {
	case OutcomeOpened:
		c.Opened++
	case OutcomeUpdated:
		c.Updated++
	case OutcomeUpToDate:
		c.UpToDate++
	case OutcomeHeld:
		c.Held++
	case OutcomeSkipped:
		c.Skipped++
	case OutcomeFailed:
		c.Failed++
	}
	return c
}
