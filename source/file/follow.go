package file

import (
	"context"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

// follower is one run of a source. One goroutine owns it.
type follower struct {
	root     string
	pace     pace
	sink     source.Sink
	watch    *watcher
	tree     *tree // as of the last walk; nil before the first
	registry *registry
	window   window
	empty    map[string]time.Time // since when files that had documents are empty, by place
	rescan   time.Time            // when to read everything again
	listed   bool                 // the first listing was sent
	again    bool                 // the next listing of everything is sent even if nothing changed
}

// follow waits for one of
//   - the end of ctx;
//   - an event, which joins the window;
//   - an error of the watcher, such as lost events: anything may have changed;
//   - being asked to list everything once more;
//   - the time at which the window, an empty or missing file or a rescan is due.
func (f *follower) follow(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(f.due()))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event := <-f.watch.events():
			if f.tree.concerns(event.Name) {
				f.window.note(event.Name, time.Now(), f.pace)
			}
		case <-f.watch.errors():
			f.window.everything(time.Now())
		case now := <-f.sink.Relist():
			f.window.everything(now)
			f.again = true
		case now := <-timer.C:
			if err := f.tick(ctx, now); err != nil {
				return err
			}
		}
	}
}

// due is when there is something to do next. While a window is open, empty and
// missing files wait for it.
func (f *follower) due() time.Time {
	due := f.rescan
	if !f.window.closed() {
		return earlier(due, f.window.due)
	}
	for _, since := range f.empty {
		due = earlier(due, since.Add(f.pace.settle))
	}
	for _, since := range f.registry.missing {
		due = earlier(due, f.goneAt(since))
	}
	return due
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (f *follower) tick(ctx context.Context, now time.Time) error {
	if !now.Before(f.rescan) {
		f.rescan = now.Add(f.pace.rescan)
		f.window.everything(now)
	}
	f.lookAgain(now)
	f.lookForMissing(now)
	if f.window.closed() || now.Before(f.window.due) {
		return nil
	}
	return f.process(ctx, now)
}

// lookAgain has those files read that have been empty for long enough.
func (f *follower) lookAgain(now time.Time) {
	for place, since := range f.empty {
		e, exists := f.tree.files[place]
		switch {
		case now.Before(since.Add(f.pace.settle)):
		case !exists:
			delete(f.empty, place)
		default:
			f.window.open(now)
			f.window.touched[e.path] = true
		}
	}
}

// process reads what the window asks for and passes on what is different.
func (f *follower) process(ctx context.Context, now time.Time) error {
	w := f.window
	f.window = window{}
	if !w.whole {
		files, ok := f.concerned(w.touched)
		if ok {
			return f.reread(ctx, files, w.first, now)
		}
	}
	return f.readEverything(ctx, w.first, now)
}
