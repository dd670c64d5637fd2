package kubernetes

import "time"

// A pod is written before a slice contains it. But each kind is read by itself, and
// pods may lag behind, or be unreadable. So a new endpoint is delayed until its pod
// is known: without the pod, it has no labels and no service account. The delay is
// bounded: a pod may never come, and a slice written by hand may name a missing pod.

// longestAwait bounds how long a pod is awaited.
const longestAwait = 5 * time.Second

// awaited are the unknown pods that slices name, by UID.
type awaited struct {
	until map[string]time.Time
	queue []deadline // of all awaited pods, and of some that have ended
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

// lapsed stops awaiting the pods that are overdue and returns them, with the next
// deadline; ok is false if there is none.
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
