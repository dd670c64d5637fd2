package file_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// between is the time from one look through the folder to the next.
const between = 30 * time.Second

// wholes is how often everything was listed.
func (d *desk) wholes() (n int) {
	synctest.Wait()
	for _, l := range d.listings {
		if l.Places == nil {
			n++
		}
	}
	return n
}

// What changes while the folder is looked through is left to its event, which is on its
// way, and is no reason to read and list everything.
func TestRescanLeavesToEventsWhatTheyTell(t *testing.T) {
	onDeskLookedThrough(t, between, []string{"a", "b", "gone"}, func(d *desk) {
		time.Sleep(between - time.Millisecond)
		d.write("a.yaml", "changed")
		d.write("new.yaml", "new")
		must(t, os.Remove(filepath.Join(d.dir, "gone.yaml")))
		time.Sleep(10 * time.Millisecond)
		for _, name := range []string{"a.yaml", "new.yaml", "gone.yaml"} {
			d.touched(name)
		}
		time.Sleep(between / 2)
		d.has("changed")
		d.has("new")
		if n := d.wholes(); n > 0 {
			t.Errorf("everything was listed %d times", n)
		}
		if len(d.state) != 2*3 {
			t.Errorf("%d records are listed, want a service and an endpoint of each of three files", len(d.state))
		}
	})
}

// What no event tells of is found, and is one step, whatever it is.
func TestRescanListsTogetherWhatNoEventTells(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(d *desk)
		after  []string
	}{
		{"a move", func(d *desk) { d.write("a.yaml", "stays"); d.write("b.yaml", "b", "a") }, []string{"a", "b", "stays"}},
		{"a new file", func(d *desk) { d.write("new.yaml", "new") }, []string{"a", "b", "new"}},
		{"a new folder", func(d *desk) {
			must(d.t, os.Mkdir(filepath.Join(d.dir, "sub"), 0o700))
			d.write("sub/new.yaml", "new")
		}, []string{"a", "b", "new"}},
		{"a new link", func(d *desk) {
			d.write("aside", "new")
			must(d.t, os.Symlink("aside", filepath.Join(d.dir, "link.yaml")))
		}, []string{"a", "b", "new"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			onDeskLookedThrough(t, between, []string{"a", "b"}, func(d *desk) {
				time.Sleep(between / 2)
				test.change(d)
				time.Sleep(2 * between)
				if n := d.wholes(); n != len(d.listings) || n == 0 {
					t.Errorf("of %d listings %d are of everything", len(d.listings), n)
				}
				for _, service := range test.after {
					d.has(service)
				}
			})
		})
	}
}

// In a folder without any event, such as one on a network disk, every file is read again each 30 s. A file
// that differs is compared once more half a second later, and counts as gone after it was missing for 2 s.
func TestRescanFindsEveryChangeInTime(t *testing.T) {
	for name, c := range map[string]struct {
		change func(d *desk)
		most   time.Duration
		after  []string
	}{
		"written": {func(d *desk) { d.write("a.yaml", "new") }, between + most, []string{"b", "new"}},
		"added":   {func(d *desk) { d.write("c.yaml", "new") }, between + most, []string{"a", "b", "new"}},
		"removed": {func(d *desk) { must(d.t, os.Remove(filepath.Join(d.dir, "b.yaml"))) }, between + most + 2*time.Second, []string{"a"}},
		"a pipe": {func(d *desk) {
			must(d.t, os.Remove(filepath.Join(d.dir, "b.yaml")))
			must(d.t, syscall.Mkfifo(filepath.Join(d.dir, "b.yaml"), 0o600))
			d.write("a.yaml", "new")
		}, between + most, []string{"b", "new"}}, // the last good b
	} {
		t.Run(name, func(t *testing.T) {
			onDeskLookedThrough(t, 0, []string{"a", "b"}, func(d *desk) { // by default
				time.Sleep(time.Millisecond) // since every file was read
				c.change(d)
				time.Sleep(c.most)
				for _, service := range c.after {
					d.has(service)
				}
				if len(d.state) != 2*len(c.after) {
					t.Errorf("%d records are listed, want a service and an endpoint of each of %v", len(d.state), c.after)
				}
			})
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
