package kubernetes

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/isthmus-mesh/isthmus/model"
)

// waits returns how long the first listing still has to wait; zero if it need not.
func (r *run) waits(now time.Time) time.Duration {
	for _, f := range r.feeds {
		if f.isListed() {
			continue
		}
		if _, err := f.failing(); err != nil && !f.required && r.mayBeListedLater(f.resource, err) {
			continue
		}
		if rest := r.began.Add(r.pace.first).Sub(now); rest > 0 || f.required {
			return max(rest, time.Millisecond)
		}
	}
	return 0
}

// mayBeListedLater reports whether a first listing may do without a kind that cannot be read
// now. That is so if the kind is absent or forbidden. It is also so if the kind's place has
// stored records, which stay. Before anything is stored, its records would be missing. Unread
// nodes and pods would be missing on endpoints, too. So these are waited for.
func (r *run) mayBeListedLater(resource string, err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || placeOf(resource) != "" && r.hasStored()
}

// hasStored reports whether an earlier listing, of this process or an earlier one, is stored.
func (r *run) hasStored() bool {
	if r.env.Stored == nil {
		return false
	}
	for range r.env.Stored() {
		return true
	}
	return false
}

// trouble returns why a kind cannot be read, and since when; err is nil if it can, or if the
// cluster does without the kind.
func (r *run) trouble(f *feed) (since time.Time, err error) {
	if since, err = f.failing(); r.isAway(f) {
		return since, nil
	}
	return since, err
}

// isAway reports whether the cluster does without an optional kind. A kind that is absent and
// has stored records, or objects read before, is not away: the records stay.
func (r *run) isAway(f *feed) bool {
	_, err := f.failing()
	return f.optional && apierrors.IsNotFound(err) && r.state.isEmpty(f.part()) && (f.isListed() || !r.hasStoredAt(f.resource))
}

// hasStoredAt reports whether records of a place were stored when the run looked first.
func (r *run) hasStoredAt(place string) bool {
	if r.stored == nil {
		if r.stored = map[string]bool{}; r.env.Stored == nil {
			return false
		}
		for record := range r.env.Stored() {
			r.stored[record.Place] = true
		}
	}
	return r.stored[place]
}

// judge checks the kinds that cannot be read. A required kind may end the run; the
// status reports the others, or that they can be read again.
func (r *run) judge(now time.Time) (again time.Duration, err error) {
	again = time.Hour
	away := false
	for _, f := range r.feeds {
		since, err := r.trouble(f)
		rest := since.Add(r.pace.failing).Sub(now)
		switch {
		case err == nil && f.required && !f.isListed() && now.Sub(r.began) >= r.pace.first:
			return 0, fmt.Errorf("%s: the API server has not listed them within %s", f.name(), r.pace.first)
		case err == nil:
			r.report(f, nil)
		case f.required && (!f.isListed() || rest <= 0):
			return 0, fmt.Errorf("%s: %s", f.name(), f.explain(err))
		case rest > 0:
			again = min(again, rest)
			away = away || f.required
		case !away: // else the API server is away, and not the kind
			r.report(f, err)
		}
	}
	return again, nil
}

// report makes the status show why a kind cannot be read, or that it can. Error texts
// change with each try, so only the reason is compared.
func (r *run) report(f *feed, err error) {
	said, reported := r.reported[f.name()]
	if !r.listed || reported == (err != nil) && said == apierrors.ReasonForError(err) {
		return
	}
	if delete(r.reported, f.name()); err != nil {
		r.reported[f.name()] = apierrors.ReasonForError(err)
	}
	r.state.list(f.resource)
}

// protect adds rejections to a listing, for parts that it lacks and for kinds that cannot
// be read any more. So the stored records of them stay. A part that was lacking when the
// listing was made counts even if it is listed by now: a later listing has it.
func (r *run) protect(s step) {
	for _, f := range r.feeds {
		if len(s.listing.Places) > 0 && s.listing.Places[0] != f.resource {
			continue
		}
		if reason := r.whyUnread(f, s.lacks[f.part()]); reason != "" {
			s.listing.Rejected = append(s.listing.Rejected, model.Rejection{
				Place: f.resource, Namespace: f.namespace, Object: f.name(), Where: f.name(), Reason: reason,
			})
		}
	}
}

// whyUnread returns why a kind cannot be read; empty if it can. The end of a lacking
// part needs no report: the next listing contains the part.
func (r *run) whyUnread(f *feed, lacking bool) string {
	_, reported := r.reported[f.name()]
	since, err := r.trouble(f)
	switch {
	case r.isAway(f):
		return ""
	case err != nil && (lacking || reported):
		r.reported[f.name()] = apierrors.ReasonForError(err)
		return fmt.Sprintf("cannot be read since %s: %s", since.UTC().Format(time.RFC3339), f.explain(err))
	case lacking:
		return "not listed yet"
	default:
		return ""
	}
}

// explain returns why a kind cannot be read, with advice.
func (k *kind) explain(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("%v; allow list and watch%s", err, k.orTurnOff())
	case apierrors.IsNotFound(err):
		return "the API server has no such kind; install its custom resource definition" + k.orTurnOff()
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("%v; renew the credentials of the kubeconfig", err)
	default:
		return err.Error()
	}
}

func (k *kind) orTurnOff() string {
	if k.off == "" {
		return ""
	}
	return ", or " + k.off
}
