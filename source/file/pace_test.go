package file_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/file"
)

const (
	quiet = 50 * time.Millisecond  // how long a file must be quiet
	most  = 500 * time.Millisecond // how long a change waits at most
	slack = 10 * time.Millisecond  // what may come on top
)

// desk is a folder that a source follows in a test's own time. The test writes
// files, and tells the source of each.
type desk struct {
	t        *testing.T
	dir      string
	events   chan fsnotify.Event
	slow     time.Duration // how long the listing of everything takes
	mu       sync.Mutex    // orders the listings of the source after the first one
	listings []listed
	state    map[model.Ref]model.Record
}

// listed is a listing, and when it came.
type listed struct {
	model.Listing
	at time.Time
}

// Replace implements [source.Sink].
func (d *desk) Replace(_ context.Context, l model.Listing) error {
	d.mu.Lock()
	d.listings = append(d.listings, listed{l, time.Now()})
	d.mu.Unlock()
	apply(d.state, l)
	if l.Places == nil {
		time.Sleep(d.slow)
	}
	return nil
}

func (d *desk) Change(context.Context, model.Change) error { return errors.ErrUnsupported }

func (d *desk) Relist() <-chan time.Time { return nil }

// onDesk runs a test on a folder with some files, after their first listing.
func onDesk(t *testing.T, files []string, test func(d *desk)) {
	t.Helper()
	onDeskLookedThrough(t, time.Hour, files, test)
}

// onDeskLookedThrough does so in a folder that is looked through so often.
func onDeskLookedThrough(t *testing.T, every time.Duration, files []string, test func(d *desk)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{t: t, dir: t.TempDir(), events: make(chan fsnotify.Event), state: map[model.Ref]model.Record{}}
		for _, name := range files {
			write(t, d.dir, name+".yaml", entry(name, name+".example"))
		}
		config := file.Config{Path: d.dir}.Pace(0, 0, 0, every).Fed(d.events)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- file.New(config, slog.New(slog.DiscardHandler)).Run(ctx, d) }()
		defer func() { cancel(); <-done }()
		synctest.Wait()
		d.mu.Lock()
		d.listings = nil
		d.mu.Unlock()
		test(d)
	})
}

// change writes a file with some services, and tells the source.
func (d *desk) change(name string, services ...string) {
	d.t.Helper()
	d.write(name, services...)
	d.touched(name)
}

// write writes a file with some services, each of another host than before.
func (d *desk) write(name string, services ...string) {
	d.t.Helper()
	text := ""
	for _, service := range services {
		text += entry(service, fmt.Sprintf("%s-%d.example", service, time.Now().UnixNano()))
	}
	write(d.t, d.dir, ".draft", text) // the source may be reading at this very moment
	rename(d.t, d.dir, ".draft", name)
}

func (d *desk) touched(name string) {
	path, err := filepath.EvalSymlinks(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	d.events <- fsnotify.Event{Name: filepath.Join(path, name), Op: fsnotify.Write}
	synctest.Wait()
}

// listedAfter returns how long after a moment a place was first listed.
func (d *desk) listedAfter(place string, since time.Time) time.Duration {
	d.t.Helper()
	synctest.Wait()
	for _, l := range d.listings {
		if !l.at.Before(since) && slices.Contains(l.Places, place) {
			return l.at.Sub(since)
		}
	}
	d.t.Fatalf("%s was not listed by itself after %s", place, since)
	return 0
}

// A steady stream of changes to other files delays none of them.
func TestEachFileIsReadWhenItIsQuiet(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		var written []time.Time
		for i := range 200 {
			written = append(written, time.Now())
			d.change(fmt.Sprintf("%03d.yaml", i), fmt.Sprintf("s%03d", i))
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Second)
		for i, at := range written {
			if after := d.listedAfter(fmt.Sprintf("%03d.yaml", i), at); after < quiet-slack || after > quiet+slack {
				t.Errorf("file %d was listed %s after it was written", i, after)
			}
		}
	})
}

// A file that is written without end is read once in a while, and keeps no
// other one from being read.
func TestFileWrittenWithoutEndIsRead(t *testing.T) {
	onDesk(t, []string{"busy", "calm"}, func(d *desk) {
		began := time.Now()
		var calm time.Time
		for i := range 200 {
			d.change("busy.yaml", "busy")
			if i == 70 {
				calm = time.Now()
				d.change("calm.yaml", "calm")
			}
			time.Sleep(10 * time.Millisecond)
		}
		if after := d.listedAfter("busy.yaml", began); after < most-slack || after > most+slack {
			t.Errorf("the file was listed %s after it was first written", after)
		}
		if after := d.listedAfter("calm.yaml", calm); after > quiet+slack {
			t.Errorf("the other file was listed after %s", after)
		}
		if n := len(d.listings); n < 4 || n > 6 {
			t.Errorf("there were %d listings in two seconds", n)
		}
	})
}

// What is due at about the same time is read together.
func TestBurstIsFewListings(t *testing.T) {
	const files = 1000
	onDesk(t, nil, func(d *desk) {
		for i := range files {
			d.change(fmt.Sprintf("%04d.yaml", i), fmt.Sprintf("s%04d", i))
			time.Sleep(500 * time.Microsecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(d.listings); n > 60 {
			t.Errorf("there were %d listings of what was written within half a second", n)
		}
		if len(d.state) != 2*files {
			t.Errorf("%d records are listed", len(d.state))
		}
	})
}

// What is remembered of changes is bounded: of more files than that, the whole
// folder is read.
func TestFloodOfChangesIsOneReadingOfEverything(t *testing.T) {
	const files = 4200
	onDesk(t, nil, func(d *desk) {
		for i := range files {
			d.change(fmt.Sprintf("%04d.yaml", i), fmt.Sprintf("s%04d", i))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(d.listings); n > 2 {
			t.Errorf("there were %d listings of what was written at once", n)
		}
		if len(d.state) != 2*files {
			t.Errorf("%d records are listed", len(d.state))
		}
	})
}

// Everything is read for half of the time at most, and single files in the other half.
func TestFilesAreReadBetweenReadingsOfEverything(t *testing.T) {
	for name, change := range map[string]func(d *desk, file string){
		"a folder": func(d *desk, _ string) { d.touched("") },
		"links": func(d *desk, file string) {
			must(d.t, os.Symlink("a.yaml", filepath.Join(d.dir, file)))
			d.touched(file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onDesk(t, []string{"a", "b"}, func(d *desk) {
				d.slow = time.Second
				for _, file := range []string{"1.yaml", "2.yaml"} {
					d.write("a.yaml", "a")
					change(d, file) // its event waits for the end of the reading before
					time.Sleep(quiet + slack)
				}
				began := time.Now()
				d.change("b.yaml", "b")
				time.Sleep(time.Minute)
				if after := d.listedAfter("b.yaml", began); after > quiet+slack {
					t.Errorf("the file was listed %s after it was written", after)
				}
				if n := d.wholes(); n != 2 {
					t.Fatalf("everything was listed %d times", n)
				}
				first, last := d.listings[0].at, d.listings[len(d.listings)-1].at
				if after := last.Sub(first); after < 2*d.slow || after > 2*d.slow+slack {
					t.Errorf("everything was listed again after %s, when it takes %s", after, d.slow)
				}
			})
		})
	}
}

// A file that is removed just before everything is read is gone, although that reading
// leaves it to its own event.
func TestFileRemovedBeforeEverythingIsReadIsGone(t *testing.T) {
	for _, before := range []time.Duration{0, quiet / 2, quiet - time.Millisecond} {
		t.Run(before.String(), func(t *testing.T) {
			onDesk(t, []string{"stays", "gone"}, func(d *desk) {
				d.touched("") // the folder itself, so everything is read
				time.Sleep(before)
				must(t, os.Remove(filepath.Join(d.dir, "gone.yaml")))
				d.touched("gone.yaml")
				time.Sleep(3 * time.Second)
				d.has("stays")
				if len(d.state) != 2 {
					t.Errorf("%d records are listed, want a service and an endpoint of one file", len(d.state))
				}
			})
		})
	}
}

// An object that moves from one file to another is there all the time, and no
// duplicate of itself, whichever file is written first and however many others
// are written at that time.
func TestMoveAmidOtherChangesIsOneStep(t *testing.T) {
	for _, places := range [][2]string{{"a.yaml", "z.yaml"}, {"z.yaml", "a.yaml"}} {
		for _, gainsFirst := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v %v", places, gainsFirst), func(t *testing.T) {
				onDesk(t, []string{"other"}, func(d *desk) {
					d.change(places[0], "stays", "moves")
					d.change(places[1], "second")
					time.Sleep(time.Second)
					steps := []func(){
						func() { d.change(places[0], "stays") },
						func() { d.change(places[1], "second", "moves") },
					}
					if gainsFirst {
						slices.Reverse(steps)
					}
					began := time.Now()
					for i := range 60 {
						d.change(fmt.Sprintf("n%d.yaml", i), fmt.Sprintf("n%d", i))
						if i == 10 || i == 12 {
							steps[(i-10)/2]()
						}
						time.Sleep(15 * time.Millisecond)
						d.has("moves")
					}
					if after := d.listedAfter(places[1], began); after > 10*15*time.Millisecond+3*quiet {
						t.Errorf("it moved after %s", after)
					}
					for _, l := range d.listings {
						if len(l.Rejected) > 0 {
							t.Errorf("rejected: %v", l.Rejected)
						}
					}
				})
			})
		}
	}
}

func (d *desk) has(service string) {
	d.t.Helper()
	synctest.Wait()
	for ref := range d.state {
		if ref.Kind == model.KindService && ref.Name == service {
			return
		}
	}
	d.t.Fatalf("%s is lost for a moment", service)
}
