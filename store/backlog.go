package store

import "time"

// backlog is the commits that are not on disk, in few groups, the oldest first.
type backlog []backlogGroup

// backlogGroup is commits that were made at about the same time.
type backlogGroup struct {
	until uint64 // of the newest commit of the group
	since time.Time
}

// The commits of a group were made within groupSpan, unless there are mostGroups
// groups.
const (
	groupSpan  = 50 * time.Millisecond
	mostGroups = 64
)

func (b *backlog) add(revision uint64, committed time.Time) {
	if n := len(*b); n > 0 {
		if last := &(*b)[n-1]; committed.Sub(last.since) < groupSpan || n == mostGroups {
			last.until = max(last.until, revision)
			return
		}
	}
	*b = append(*b, backlogGroup{revision, committed})
}

// since returns when the oldest commit after a revision was made; zero if there is
// none.
func (b backlog) since(revision uint64) time.Time {
	for _, g := range b {
		if g.until > revision {
			return g.since
		}
	}
	return time.Time{}
}

// done forgets the commits up to a revision.
func (b *backlog) done(revision uint64) {
	n := 0
	for n < len(*b) && (*b)[n].until <= revision {
		n++
	}
	*b = append((*b)[:0], (*b)[n:]...)
}

// startOver makes everything up to a revision the backlog, also of another epoch.
func (b *backlog) startOver(revision uint64, now time.Time) {
	since := now
	if len(*b) > 0 {
		since = (*b)[0].since
	}
	*b = append((*b)[:0], backlogGroup{revision, since})
}
