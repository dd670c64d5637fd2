package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

var errEnded = errors.New("the process has ended")

// forgetful is a file system of which a power failure leaves what was synced, and
// of the rest anything: a file keeps some of the bytes that were written since,
// or zeros, and a name leads to whatever it led to since its folder was synced.
// The process ends just before an operation of a number.
type forgetful struct {
	diskFiles

	mu     sync.Mutex
	names  map[string][]*node // what each path led to since its folder was synced, the newest last; nil is nothing
	until  int                // operations before the end
	ended  bool
	before func() // looks at the process just before it ends
}

// node is a file, or a folder.
type node struct {
	content []byte
	synced  int
	folder  bool
}

func newForgetful(top string) *forgetful {
	return &forgetful{names: map[string][]*node{top: {{folder: true}}}}
}

// live has the next process run until some operation.
func (f *forgetful) live(until int, before func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until, f.before, f.ended = until, before, false
}

// end ends the process now, if it has not ended.
func (f *forgetful) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = 0
	_ = f.step()
}

// step begins an operation.
func (f *forgetful) step() error {
	if f.until--; f.until < 0 && !f.ended {
		f.ended = true
		f.before()
	}
	if f.ended {
		return errEnded
	}
	return nil
}

func (f *forgetful) at(path string) *node {
	if list := f.names[path]; len(list) > 0 {
		return list[len(list)-1]
	}
	return nil
}

func (f *forgetful) leads(path string, to *node) {
	if len(f.names[path]) == 0 {
		f.names[path] = []*node{nil}
	}
	f.names[path] = append(f.names[path], to)
}

// do does an operation on the real folder, and then in the model of it.
func (f *forgetful) do(really func() error, model func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.step()
	if err == nil {
		err = really()
	}
	if err == nil {
		model()
	}
	return err
}

func (f *forgetful) mkdir(path string) error {
	return f.do(func() error { return f.diskFiles.mkdir(path) }, func() { f.leads(path, &node{folder: true}) })
}

func (f *forgetful) rename(from, to string) error {
	return f.do(func() error { return f.diskFiles.rename(from, to) }, func() {
		f.leads(to, f.at(from))
		f.leads(from, nil)
	})
}

func (f *forgetful) link(from, to string) error {
	return f.do(func() error { return f.diskFiles.link(from, to) }, func() { f.leads(to, f.at(from)) })
}

func (f *forgetful) remove(path string) error {
	return f.do(func() error { return f.diskFiles.remove(path) }, func() { f.leads(path, nil) })
}

func (f *forgetful) sync(path string) error {
	return f.do(func() error { return nil }, func() {
		n := f.at(path)
		if n == nil {
			return // above all
		}
		if !n.folder {
			n.synced = len(n.content)
			return
		}
		for name, list := range f.names {
			if filepath.Dir(name) == path {
				f.names[name] = list[len(list)-1:]
			}
		}
	})
}

func (f *forgetful) create(path string) (file, error) {
	out := &forgetfulFile{on: f, node: &node{}}
	err := f.do(func() (err error) {
		out.file, err = f.diskFiles.create(path)
		return err
	}, func() { f.leads(path, out.node) })
	return out, err
}

type forgetfulFile struct {
	on   *forgetful
	node *node
	file file
}

func (o *forgetfulFile) Write(b []byte) (n int, err error) {
	err = o.on.do(func() error {
		n, err = o.file.Write(b)
		return err
	}, func() { o.node.content = append(o.node.content, b...) })
	return n, err
}

func (o *forgetfulFile) Sync() error {
	return o.on.do(func() error { return nil }, func() { o.node.synced = len(o.node.content) })
}

func (o *forgetfulFile) Close() error { return o.file.Close() }

// powerFailure makes in another folder what it may leave of one.
func (f *forgetful) powerFailure(t failing, chance *rand.Rand, dir, to string) *forgetful {
	t.Helper()
	next := newForgetful(to)
	for _, path := range slices.Sorted(maps.Keys(f.names)) {
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == "." {
			continue
		}
		n := f.names[path][chance.IntN(len(f.names[path]))]
		there := filepath.Join(to, rel)
		if n == nil || next.at(filepath.Dir(there)) == nil {
			continue
		}
		left := n.left(chance)
		if n.folder {
			err = os.Mkdir(there, 0o700)
		} else {
			err = os.WriteFile(there, left, 0o600)
		}
		if err != nil {
			t.Fatalf("%v", err)
		}
		next.names[there] = []*node{{content: left, synced: len(left), folder: n.folder}}
	}
	return next
}

// left is what a power failure may leave of a file.
func (n *node) left(chance *rand.Rand) []byte {
	left := slices.Clone(n.content)
	lost := left[n.synced:]
	switch chance.IntN(3) {
	case 0:
		return left[:n.synced]
	case 1:
		return left[:n.synced+chance.IntN(len(lost)+1)]
	}
	const block = 64
	for at := 0; at < len(lost); at += block {
		if chance.IntN(2) == 0 {
			clear(lost[at:min(at+block, len(lost))])
		}
	}
	return left
}

// TestAnyPowerFailureLeavesAStateThatWas kills the process and cuts the power at
// any operation of any history. What a killed process handed to the operating
// system is there, and what was said to be on disk is there after a power failure.
// Nothing is ever said to be damaged: what was not synced is known to be so.
func TestAnyPowerFailureLeavesAStateThatWas(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		lives := rapid.SliceOfN(rapid.Custom(drawLife), 1, 8).Draw(rt, "lives")
		var err error
		synctest.Test(t, func(t *testing.T) {
			p := &powered{T: t, top: top, chance: rand.New(rand.NewPCG(seed, 0)), states: map[uint64]map[model.Ref]model.Record{0: {}}}
			p.files = newForgetful(p.folder())
			for _, l := range append(lives, life{operations: 1 << 20}) {
				if err = p.live(l); err != nil {
					return
				}
			}
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// life is what happens to one process.
type life struct {
	operations  int // of the disk, after which it ends
	minJournal  int64
	maxJournals int
	history     int
	steps       []turn
	power       bool // ends with it
}

// turn is a commit, or a wait.
type turn struct {
	commit map[string]string
	wait   time.Duration
}

func drawLife(t *rapid.T) life {
	waits := rapid.SampledFrom([]time.Duration{time.Millisecond, 150 * time.Millisecond, time.Second, 2 * time.Minute})
	commits := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.SampledFrom([]string{"", "x", strings.Repeat("y", 300)}), 1, 4)
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) turn {
		if rapid.IntRange(0, 2).Draw(t, "step") == 0 {
			return turn{wait: waits.Draw(t, "wait")}
		}
		return turn{commit: commits.Draw(t, "commit")}
	}), 0, 15)
	return life{
		operations: rapid.IntRange(0, 90).Draw(t, "operations"),
		minJournal: rapid.Int64Range(1, 2000).Draw(t, "journal"), maxJournals: rapid.IntRange(0, 4).Draw(t, "journals"),
		history: rapid.SampledFrom([]int{0, 3}).Draw(t, "history"), steps: steps.Draw(t, "steps"), power: rapid.Bool().Draw(t, "power"),
	}
}

// powered is a history of processes on one folder.
type powered struct {
	*testing.T
	chance *rand.Rand
	top    string
	dir    string
	files  *forgetful

	states  map[uint64]map[model.Ref]model.Record // by revision
	written uint64                                // at least this is there after a kill
	saved   uint64                                // and this after a power failure
}

// folder chooses the next folder, which is two below one that there is.
func (p *powered) folder() (there string) {
	there, err := os.MkdirTemp(p.top, "")
	if err != nil {
		p.Fatal(err)
	}
	p.dir = filepath.Join(there, "state", "isthmus")
	return there
}

// live runs a process until an operation, if it does not end before.
func (p *powered) live(l life) error {
	var disk *Disk
	p.files.live(l.operations, func() {
		if disk != nil {
			s := disk.Saving()
			p.written, p.saved = max(p.written, s.Written.Revision), max(p.saved, s.Saved.Revision)
		}
	})
	tuning := defaultTuning()
	tuning.minJournal, tuning.maxJournals = l.minJournal, l.maxJournals
	d, err := openDisk(DiskConfig{Dir: p.dir, Store: Config{History: l.history}}, tuning, p.files)
	if err != nil && !errors.Is(err, errEnded) {
		return err
	}
	p.files.mu.Lock()
	disk = d
	ended := p.files.ended
	p.files.mu.Unlock()
	if ended && err == nil {
		d.Close()
	}
	if !ended {
		err = p.check(d)
		k := runDisk(p.T, d)
		for _, s := range l.steps {
			time.Sleep(s.wait)
			if len(s.commit) > 0 {
				revision := say(p.T, d.Store(), s.commit)
				p.states[revision] = contentOf(d.Store())
			}
		}
		p.files.end()
		_ = k.stop()
		if err != nil {
			return err
		}
	}
	if p.files.end(); l.power {
		before := filepath.Dir(filepath.Dir(p.dir))
		p.files = p.files.powerFailure(p.T, p.chance, before, p.folder())
		p.written = p.saved
	}
	return nil
}

// check compares what was restored with what was committed.
func (p *powered) check(d *Disk) error {
	revision, restored := d.Store().Revision(), d.Restored()
	want, ok := p.states[revision]
	switch {
	case restored.Damage != nil:
		return restored.Damage
	case !ok || revision < p.written:
		return fmt.Errorf("restored revision %d, and %d was to be there", revision, p.written)
	}
	if diff := cmp.Diff(want, contentOf(d.Store()), cmp.Comparer(sameState)); diff != "" {
		return fmt.Errorf("revision %d is (-want +got):\n%s", revision, diff)
	}
	maps.DeleteFunc(p.states, func(r uint64, _ map[model.Ref]model.Record) bool { return r > revision })
	p.written = revision
	return nil
}
