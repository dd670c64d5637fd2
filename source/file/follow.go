package file

import (
	"context"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

// follower is one run of a source. One goroutine owns it.
type follower struct {
	folder
	pace    pace
	sink    source.Sink
	pending *pending
	empty   map[string]time.Time // since when files that had documents are empty, by place
	lookAt  time.Time            // missing files are not judged before, as others are being written
	forced  time.Time            // when everything was last read because of the state of some files
	rescan  time.Time            // start of the next scan
	scan    *scan                // the running scan; may be nil
	listed  bool                 // the first listing was sent
	again   bool                 // the next listing of everything is sent even if nothing changed
}

// follow waits for one of
//   - the end of ctx;
//   - an event, which joins the window of its file;
//   - lost events: anything may have changed;
//   - a relist that the supervisor requests;
//   - the time at which a window, an empty or missing file, a rescan or the next step of
//     one is due.
func (f *follower) follow(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(f.due()))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event := <-f.watch.Events():
			f.note(event.Name, time.Now())
		case <-f.watch.Lost():
			f.pending.noteWhole(time.Now())
		case now := <-f.sink.Relist():
			f.pending.everything(now, now)
			f.again = true
		case now := <-timer.C:
			if err := f.tick(ctx, now); err != nil {
				return err
			}
		}
	}
}

// note records an event.
func (f *follower) note(path string, now time.Time) {
	_, isDir := f.tree.dirs[path]
	switch {
	case !f.tree.concerns(path):
	case f.tree.turns[path], isDir:
		f.pending.noteWhole(now)
	default:
		f.pending.note(path, now)
	}
}

// due returns the time of the next action. Empty and missing files wait for a pending
// reading of everything.
func (f *follower) due() time.Time {
	due := f.pending.due(f.rescan)
	if f.pending.awaitsWhole() {
		return due
	}
	if f.scan != nil {
		due = earlier(due, f.scan.next)
	}
	for place, since := range f.empty {
		if !f.pending.has(f.tree.files[place].path) {
			due = earlier(due, since.Add(f.pace.settle))
		}
	}
	for _, since := range f.documents.Missing() {
		due = earlier(due, later(f.goneAt(since), f.lookAt))
	}
	return due
}

func (f *follower) tick(ctx context.Context, now time.Time) error {
	if err := f.goOn(ctx, now); err != nil {
		return err
	}
	f.lookAgain(now)
	f.lookForMissing(now)
	files, whole := f.pending.take(now)
	if len(files) == 0 && whole.first.IsZero() {
		return nil
	}
	return f.process(ctx, files, whole, now)
}

// goOn begins a scan, or continues the running one, if that is due.
func (f *follower) goOn(ctx context.Context, now time.Time) error {
	due := !now.Before(f.rescan)
	if due {
		f.rescan = now.Add(f.pace.rescan)
	}
	switch {
	case due && f.scan == nil:
		s, err := f.beginScan(now)
		if err == nil && s == nil {
			f.pending.everything(now, now)
		}
		f.scan = s
		return err
	case f.scan == nil || now.Before(f.scan.next):
		return nil
	case !f.scan.again:
		return f.scan.step(ctx, &f.folder, f.pending, now, f.pace.most)
	}
	differs, err := f.scan.end(ctx, &f.folder, f.pending)
	f.scan = nil
	if differs {
		f.pending.everything(now, now)
	}
	return err
}

// lookAgain schedules a reading of the files that have been empty for long enough.
func (f *follower) lookAgain(now time.Time) {
	for place, since := range f.empty {
		e, exists := f.tree.files[place]
		switch {
		case now.Before(since.Add(f.pace.settle)):
		case !exists:
			delete(f.empty, place)
		default:
			f.pending.look(e.path, now)
		}
	}
}

// process reads files that are due, or everything, and passes on the changes.
func (f *follower) process(ctx context.Context, due map[string]window, whole window, now time.Time) error {
	observed := now
	for _, w := range due {
		observed = earlier(observed, w.first)
	}
	if !whole.first.IsZero() {
		return f.readEverything(ctx, due, earlier(observed, whole.first), now)
	}
	if files, ok := f.concerned(due); ok {
		return f.reread(ctx, files, due, observed, now)
	}
	if next := later(f.forced.Add(f.pace.most), f.pending.calm); now.Before(next) {
		f.pending.everything(observed, next)
		return nil
	}
	f.forced = now
	return f.readEverything(ctx, due, observed, now)
}
