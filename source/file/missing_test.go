package file_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// soon is when a change has been read for sure, in a test's own time.
const soon = 100 * time.Millisecond

// shelf is a folder of four files that is mirrored in a test's own time. No
// events reach it there, so the folder is read every few milliseconds.
type shelf struct {
	*supervise.Supervisor
	t     *testing.T
	dir   string
	store *store.Memory
}

func shelve(t *testing.T, test func(s *shelf)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{t: t, dir: t.TempDir(), store: store.NewMemory(store.Config{})}
		for _, name := range []string{"a", "b", "sub/c", "sub/d"} {
			s.write(name+".yaml", filepath.Base(name))
		}
		config := file.Config{Path: s.dir}.Pace(time.Millisecond, 0, 0, 10*time.Millisecond).Unwatched()
		s.Supervisor = supervise.New("files", file.New(config, slog.New(slog.DiscardHandler)), s.store, supervise.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		defer func() { cancel(); <-done }()
		s.stays(soon, "a@a.yaml", "b@b.yaml", "c@sub/c.yaml", "d@sub/d.yaml")
		test(s)
	})
}

func (s *shelf) write(name string, services ...string) {
	s.t.Helper()
	text := ""
	for _, service := range services {
		text += entry(service, service+".example")
	}
	write(s.t, s.dir, name, text)
}

func (s *shelf) remove(name string) {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
		s.t.Fatal(err)
	}
}

// stays checks which services are stored, each with its endpoint: during all of
// a time but its beginning, in which a change is read, they are these.
func (s *shelf) stays(during time.Duration, want ...string) {
	s.t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		synctest.Wait()
		if time.Until(end) > during-soon/2 {
			s.serves(want)
			continue
		}
		var got []string
		endpoints := 0
		for rec := range s.store.List(model.Filter{}) {
			if rec.Kind == model.KindService {
				got = append(got, fmt.Sprintf("%s@%s", rec.Name, rec.Place))
			}
			if rec.Kind == model.KindEndpoint {
				endpoints++
			}
		}
		if !slices.Equal(got, want) || endpoints != len(want) {
			s.t.Fatalf("stored are %v with %d endpoints %s before the end, want %v", got, endpoints, time.Until(end), want)
		}
	}
	if rejected := s.Status().Rejected; len(rejected) > 0 {
		s.t.Errorf("rejected are %v", rejected)
	}
}

// serves checks that services are stored, wherever they stand, if they were.
func (s *shelf) serves(want []string) {
	s.t.Helper()
	if s.Status().LastListing.IsZero() {
		return
	}
	have := map[string]bool{}
	for rec := range s.store.List(model.Filter{Kind: model.KindService}) {
		have[rec.Name] = true
	}
	for _, at := range want {
		if name := at[:1]; name <= "d" && !have[name] {
			s.t.Fatalf("%s is lost for a moment", name)
		}
	}
}

func TestFileIsGoneAfterTwoSeconds(t *testing.T) {
	shelve(t, func(s *shelf) {
		s.remove("a.yaml")
		s.stays(1950*time.Millisecond, "a@a.yaml", "b@b.yaml", "c@sub/c.yaml", "d@sub/d.yaml")
		time.Sleep(soon)
		s.stays(soon, "b@b.yaml", "c@sub/c.yaml", "d@sub/d.yaml")
	})
}

func TestFolderIsGoneAfterTwoSeconds(t *testing.T) {
	shelve(t, func(s *shelf) {
		s.remove("sub")
		s.stays(1950*time.Millisecond, "a@a.yaml", "b@b.yaml", "c@sub/c.yaml", "d@sub/d.yaml")
		time.Sleep(soon)
		s.stays(soon, "a@a.yaml", "b@b.yaml")
	})
}

func TestFileWrittenAnewLosesNothing(t *testing.T) {
	shelve(t, func(s *shelf) {
		s.remove("a.yaml")
		s.remove("sub")
		s.stays(1500*time.Millisecond, "a@a.yaml", "b@b.yaml", "c@sub/c.yaml", "d@sub/d.yaml")
		s.write("a.yaml", "a", "e")
		s.write("sub/c.yaml", "c")
		s.write("sub/d.yaml", "d")
		s.stays(soon, "a@a.yaml", "b@b.yaml", "c@sub/c.yaml", "d@sub/d.yaml", "e@a.yaml")
		s.stays(5*time.Second, "a@a.yaml", "b@b.yaml", "c@sub/c.yaml", "d@sub/d.yaml", "e@a.yaml")
	})
}

// Whether an object moves at once or is away for a moment, and to whichever
// name, it is there all the time, and no duplicate of itself.
func TestMovedObjectIsNeverLost(t *testing.T) {
	for name, away := range map[string]time.Duration{"at once": 0, "after a second": time.Second} {
		t.Run(name, func(t *testing.T) {
			shelve(t, func(s *shelf) {
				s.remove("a.yaml")
				s.remove("sub/d.yaml")
				if away > 0 {
					s.stays(away, "a@a.yaml", "b@b.yaml", "c@sub/c.yaml", "d@sub/d.yaml")
				}
				s.write("z.yaml", "a")
				s.write("1.yaml", "d")
				s.stays(5*time.Second, "a@z.yaml", "b@b.yaml", "c@sub/c.yaml", "d@1.yaml")
				s.write("z.yaml", "a", "f")
				s.stays(soon, "a@z.yaml", "b@b.yaml", "c@sub/c.yaml", "d@1.yaml", "f@z.yaml")
			})
		})
	}
}

// What is taken out of a file that stays is gone at once.
func TestEditedFileActsAtOnce(t *testing.T) {
	shelve(t, func(s *shelf) {
		s.write("a.yaml", "a", "e")
		s.stays(soon, "a@a.yaml", "b@b.yaml", "c@sub/c.yaml", "d@sub/d.yaml", "e@a.yaml")
		s.write("a.yaml", "a")
		s.stays(soon, "a@a.yaml", "b@b.yaml", "c@sub/c.yaml", "d@sub/d.yaml")
	})
}

// However it comes about that nothing is left, it is a suspicious drop.
func TestFolderWithNothingLeftIsHeld(t *testing.T) {
	for name, empty := range map[string]func(s *shelf){
		"removed": func(s *shelf) {
			s.remove("a.yaml")
			s.remove("b.yaml")
			s.remove("sub")
		},
		"removed one after the other": func(s *shelf) {
			for _, name := range []string{"a.yaml", "b.yaml", "sub/c.yaml", "sub/d.yaml"} {
				s.remove(name)
				time.Sleep(time.Second)
			}
		},
		"edited": func(s *shelf) {
			for _, name := range []string{"a.yaml", "b.yaml", "sub/c.yaml", "sub/d.yaml"} {
				s.write(name)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			shelve(t, func(s *shelf) {
				synctest.Wait() // until nothing is being read
				empty(s)
				s.stays(10*time.Second, "a@a.yaml", "b@b.yaml", "c@sub/c.yaml", "d@sub/d.yaml")
				if st := s.Status(); st.State != source.StateHeld || st.Held != 8 {
					s.t.Errorf("%d records are held, %s %s", st.Held, st.State, st.Reason)
				}
				time.Sleep(2 * time.Minute)
				s.stays(soon)
			})
		})
	}
}

// A folder that is taken away keeps the services of its files, even if the system reports a file in
// it first, and the folder late.
func TestFolderIsGoneBeforeItsEventIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		outside := t.TempDir()
		root := filepath.Join(outside, "registry")
		events := make(chan fsnotify.Event, 1)
		for _, name := range []string{"a", "b", "c", "d"} {
			write(t, root, name+".yaml", entry(name, name+".example"))
		}
		stored := store.NewMemory(store.Config{})
		config := file.Config{Path: root}.Pace(0, 0, 0, time.Hour).Fed(events)
		s := supervise.New("files", file.New(config, slog.New(slog.DiscardHandler)), stored, supervise.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		defer func() { cancel(); <-done }()
		synctest.Wait()
		rename(t, "", root, filepath.Join(outside, "aside"))
		events <- fsnotify.Event{Name: filepath.Join(root, "a.yaml"), Op: fsnotify.Write}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(slices.Collect(stored.List(model.Filter{Kind: model.KindService}))); n != 4 {
			t.Errorf("%d of 4 services are left", n)
		}
		if st := s.Status(); st.State != source.StateStale {
			t.Errorf("the source is %s: %s", st.State, st.Reason)
		}
	})
}
