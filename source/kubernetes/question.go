package kubernetes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/isthmus-mesh/isthmus/model"
)

// A watch may be silent because nothing changes, or because a proxy on the way withholds its
// events. API servers promise no bookmarks, so silence proves neither: it is a question to the
// API server. Has it objects newer than the newest event, or another number of them? A version
// and a count answer that, so nothing is kept of each object.

// silence bounds how long a watch is silent before the API server is asked.
type silence struct {
	usual  time.Duration // where the API server may send no bookmarks
	marked time.Duration // where it sent one last, about one a minute, and where events are missed
	late   time.Duration // how long events may be on their way
	retry  time.Duration // the pause after a question that was not answered
}

// reception is the state of a feed's watch. The lock of the feed guards it.
type reception struct {
	silence
	relist chan struct{} // has everything listed anew

	at         time.Time // of the newest event, bookmark, list, or answer to a question
	version    string    // the newest resource version; empty before the first list
	objects    int       // number of objects
	bookmarks  bool      // the API server sends some
	deaf       time.Time // since when events are missed; zero if none are
	unanswered error     // why the newest questions were not answered; nil if they were
	asking     time.Time // since when none was answered
}

func newReception(s silence) reception {
	// Not all kinds are asked for at once.
	s.usual += rand.N(s.usual / 10)   //nolint:gosec // no secret
	s.marked += rand.N(s.marked / 10) //nolint:gosec // no secret
	return reception{silence: s, relist: make(chan struct{}, 1)}
}

// receives notes an event of a watch.
func (f *feed) receives(e watch.Event) {
	if e.Type == watch.Error {
		return
	}
	f.mu.Lock()
	changed := !f.deaf.IsZero() || f.unanswered != nil
	f.at, f.deaf, f.unanswered = time.Now(), time.Time{}, nil
	f.bookmarks = f.bookmarks || e.Type == watch.Bookmark && !endsList(e)
	f.mu.Unlock()
	if changed {
		f.tell()
	}
}

// endsList reports whether a bookmark ends the list that a watch began with.
func endsList(e watch.Event) bool {
	m, err := meta.Accessor(e.Object)
	return err == nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] != ""
}

// lists notes a list.
func (f *feed) lists(objects int, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.objects, f.version, f.unanswered = time.Now(), objects, version, nil
	select {
	case <-f.relist:
	default:
	}
}

// counts notes that an object was added or deleted.
func (f *feed) counts(change int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects += change
}

// UpdateResourceVersion implements [cache.ResourceVersionUpdater].
func (f *feed) UpdateResourceVersion(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version = version
}

// listen asks the API server after each silence, until ctx ends.
func (f *feed) listen(ctx context.Context) {
	for wait := f.marked; ; wait = f.question(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// question asks whether events were missed, if that is due, and returns the time until the next
// look.
func (f *feed) question(ctx context.Context) time.Duration {
	r, due := f.silent()
	if !due { // a bookmark may come that shortens the wait
		return max(min(time.Until(r.at.Add(f.patience(r))), f.marked), f.retry)
	}
	missed, err := f.missed(ctx, r)
	if apierrors.IsForbidden(err) {
		err = nil // watches alone are allowed
	}
	if ctx.Err() == nil && missed {
		select { // they may be on their way
		case <-ctx.Done():
		case <-time.After(f.late):
		}
	}
	if ctx.Err() == nil {
		f.conclude(r, missed, err)
	}
	return f.retry
}

// silent returns the reception, and whether the last event of it is long ago. A failing list or watch
// is no silence.
func (f *feed) silent() (r reception, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reception, f.version != "" && f.err == nil && time.Since(f.at) >= f.patience(f.reception)
}

func (f *feed) patience(r reception) time.Duration {
	if r.bookmarks || !r.deaf.IsZero() {
		return f.marked
	}
	return f.usual
}

// missed asks the API server, from its cache and for metadata alone, whether events of it were missed.
func (f *feed) missed(ctx context.Context, r reception) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	list, err := f.api.Metadata(ctx, metav1.ListOptions{ResourceVersion: r.version, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		return false, err
	}
	for i := range list.Items {
		if order, err := resourceversion.CompareResourceVersion(list.Items[i].ResourceVersion, r.version); err == nil && order > 0 {
			return true, nil
		}
	}
	return len(list.Items) != r.objects, nil
}

// conclude notes the outcome of a question, unless something was received since. Missed events
// have everything listed anew.
func (f *feed) conclude(r reception, missed bool, err error) {
	f.mu.Lock()
	if !f.at.Equal(r.at) {
		f.mu.Unlock()
		return
	}
	changed := missed || (err == nil) != (f.unanswered == nil)
	switch {
	case err == nil:
		f.at, f.bookmarks, f.unanswered = time.Now(), f.bookmarks && missed, nil
	case f.unanswered == nil:
		f.unanswered, f.asking = err, time.Now()
	default:
		f.unanswered = err
	}
	if missed && f.deaf.IsZero() {
		f.deaf = r.at
	}
	f.mu.Unlock()
	if missed {
		select {
		case f.relist <- struct{}{}:
		default: // it is going to be listed
		}
	}
	if changed {
		f.tell()
	}
}

// tell has the notices of the source passed on.
func (f *feed) tell() {
	f.into.list(f.resource)
	f.wake()
}

// isDeaf reports whether events are missed, and since when.
func (f *feed) isDeaf() (since time.Time, is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deaf, !f.deaf.IsZero()
}

// notices returns a notice for each kind of which events are missed.
func (r *run) notices() []model.Notice {
	list := []model.Notice{} // not nil: notices were looked for
	for _, f := range r.feeds {
		if since, is := f.isDeaf(); is {
			list = append(list, model.Notice{Object: f.name(), Where: "the watch of the API server", Text: fmt.Sprintf(
				"it has delivered nothing since %s although objects have changed, so the API server is asked after each %s; look for a proxy or a balancer in front of the API server that buffers answers or loses connections",
				since.UTC().Format(time.RFC3339), f.marked.Round(time.Second))})
		}
	}
	return list
}

// listAnew ends a watch, so that the reflector lists. While a watch begins with a list, an expired
// version would have the reflector begin the next one so, too.
var listAnew = watch.Event{Type: watch.Error, Object: &apierrors.NewBadRequest("the watch delivers nothing").ErrStatus}
