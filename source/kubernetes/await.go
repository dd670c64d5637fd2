package kubernetes

import (
	"time"

	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
)

// A pod is written before a slice has it. But each kind is read by itself, and pods may be
// behind, or cannot be read. So a new endpoint is kept back until its pod is known: without
// it the endpoint has no labels and no service account. A pod that never comes must not
// keep an endpoint back for ever, nor must one that is written by hand and names a pod that
// is not there.

// longestAwait is how long a pod is awaited.
const longestAwait = 5 * time.Second

// awaited are the pods that slices have and that are not known, by UID.
type awaited struct {
	until map[string]time.Time
	queue []deadline // of all of them, and of some that have ended
}

type deadline struct {
	uid string
	at  time.Time
}

func (a *awaited) begin(uid string, at time.Time) {
	a.until[uid] = at
	a.queue = append(a.queue, deadline{uid, at})
}

func (a *awaited) end(uid string) { delete(a.until, uid) }

// lapsed returns the pods that have been awaited for too long, which ends, and the time of
// the next; ok is false if there is none.
func (a *awaited) lapsed(now time.Time) (uids []string, next time.Time, ok bool) {
	for len(a.queue) > 0 {
		first := a.queue[0]
		if until, is := a.until[first.uid]; is && until.Equal(first.at) {
			if first.at.After(now) {
				return uids, first.at, true
			}
			uids = append(uids, first.uid)
			a.end(first.uid)
		}
		a.queue = a.queue[1:]
	}
	a.queue = nil
	return uids, next, false
}

// await begins to await the pods that no slice had before this one. What a first listing
// has is passed on at once: it may have been there before the run.
func (m *mirror) await(s *convert.Slice, at time.Time) {
	if !m.primed || !m.readsPods {
		return
	}
	for p := range s.Pods() {
		if known := m.pods[p.Name]; known.UID != p.UID && !m.index.HasPod(p.UID) {
			m.awaited.begin(p.UID, at.Add(longestAwait))
		}
	}
}

// lapse stops awaiting pods that did not come, and says when to look again at the latest.
func (m *mirror) lapse(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	uids, next, ok := m.awaited.lapsed(now)
	for _, uid := range uids {
		m.began(now)
		m.mark(m.index.PodChanged(uid))
	}
	if !ok {
		return time.Hour
	}
	return next.Sub(now)
}

// Awaits implements [convert.Places].
func (m *mirror) Awaits(uid string) bool {
	_, is := m.awaited.until[uid]
	return is
}
