package laws_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// TestAnyHistoryEndsWithWhatTheRegistriesSay is the law of the whole.
// Registries change, fail, lie and get stuck; sources come, go, and change
// places and settings; the application stops, is killed and begins again;
// clients come and go. Whenever all is at rest, every client holds exactly
// what is computed anew from what each registry last said completely and what
// is held of it; and it was sent nothing without a reason, of which strict
// clients keep account.
func TestAnyHistoryEndsWithWhatTheRegistriesSay(t *testing.T) {
	t.Parallel()
	for part := range 4 {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			rapid.Check(t, func(r *rapid.T) { enact(t, r, root) })
		})
	}
}

// FuzzAnyHistory is the same for more histories than anyone would wait for.
func FuzzAnyHistory(f *testing.F) {
	for seed := range uint64(8) { // what is shorter than a history is none
		input := make([]byte, 16<<10)
		chance := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is to be the same every time
		for i := range input {
			input[i] = byte(chance.Uint32())
		}
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		root := t.TempDir()
		rapid.MakeFuzz(func(r *rapid.T) { enact(t, r, root) })(t, input)
	})
}

func enact(t *testing.T, r *rapid.T, root string) {
	t.Helper()
	p := &play{script: drawScript(r), root: filepath.Join(root, "play")}
	synctest.Test(t, func(*testing.T) { p.enact() })
	if err := os.RemoveAll(p.root); err != nil {
		t.Fatal(err)
	}
	if p.wrong != "" {
		r.Fatalf("%s\n%s", p.wrong, p.story())
	}
}

// play is a history that happens. Its goroutine tells everything, and looks at
// everything whenever all is at rest.
type play struct {
	script     script
	registries [registries]*registry
	gone       [registries]map[model.Ref]model.Object // dropped, and may come back
	before     [registries]map[model.Ref]model.Object // as they were before waves
	fresh      int                                    // endpoints that rollouts made
	wanted     []entry
	former     []entry  // wanted before the last reload
	present    []*seat  // of the sources there are, in the order of merging
	process    *process // nil while there is none
	clients    []*client
	ledger     xdsclient.Ledger
	vault      vault
	offers     []*offer                  // of this process
	handed     int                       // so many, in all
	kept       map[string][]model.Object // by another system, by source
	stored     lawStore                  // of the process there is, also before it runs

	root, dir string // of everything; of the store, empty if it is kept in memory
	copies    int
	killed    time.Time
	last      *diary // of the process before this one

	mu      sync.Mutex // guards the mirrors, and what is taken note of when they change
	mirrors map[string]*mirror
	recent  []telling            // the messages since none was on its way
	moved   time.Time            // when they last said something else
	marks   map[string]time.Time // since when sources are stale, as their marks say

	at       int       // step
	calm     bool      // time stood still since all was at rest
	followed time.Time // when somebody asked for something else by what another client holds
	nacks    struct {  // that had to wait for their turn
		n    int
		last time.Time
	}
	wrong  string
	finish []func()
}

// over ends a play in which something is wrong.
type over struct{}

// These make it what a client needs of a test.
func (p *play) Helper()          {}
func (p *play) Cleanup(f func()) { p.finish = append(p.finish, f) }

func (p *play) Errorf(format string, args ...any) {
	if p.wrong == "" {
		p.wrong = fmt.Sprintf(format, args...)
	}
}

func (p *play) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	panic(over{})
}

func (p *play) story() string {
	lines := []string{fmt.Sprintf("sources %+v, store %s, history %d or %d bytes, late %v, turns %d, secrets at once %t, debounce %+v; after step %d of",
		p.script.Sources, p.script.Store, p.script.History, p.script.Bytes, p.script.Late, p.script.Turn, p.script.Vault, p.script.Debounce, p.at)}
	for i, objects := range p.script.Objects {
		for _, o := range objects {
			lines = append(lines, fmt.Sprintf("registry %d: %s", i, step{What: "put", Objects: []model.Object{o}}))
		}
	}
	for i, s := range p.script.Steps {
		lines = append(lines, fmt.Sprint(i, ": ", s))
	}
	return strings.Join(lines, "\n")
}

func (p *play) enact() {
	defer p.tidyUp()
	defer func() {
		if r := recover(); r != nil && r != (over{}) {
			p.wrong = fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	for i, objects := range p.script.Objects {
		p.registries[i], p.gone[i], p.before[i] = newRegistry(p.script.Late[i]), map[model.Ref]model.Object{}, map[model.Ref]model.Object{}
		for _, o := range objects {
			p.registries[i].objects[o.Record.Ref] = o
		}
	}
	if p.script.Store == "disk" {
		p.dir = filepath.Join(p.root, "data")
	}
	p.wanted = p.script.Sources
	p.start()
	for _, n := range p.script.Clients {
		p.connect(n)
	}
	for p.at = range p.script.Steps {
		s := p.script.Steps[p.at]
		p.calm = p.calm && p.isOne(s)
		p.happen(s)
		if s.Rest {
			p.rest()
		}
	}
	p.comeToRest()
}

func (p *play) tidyUp() {
	for _, f := range slices.Backward(p.finish) {
		f()
	}
	if p.process != nil {
		p.process.cancel()
		<-p.process.ended
		_ = p.process.conn.Close()
		p.process.diary.end()
	}
}

// took has reached its readers: what was said is stored, or it has failed.
func (p *play) took(name string, store func() error, s said) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	suspected := p.suspected(name)
	err := store()
	if m := p.mirrors[name]; err == nil && m != nil {
		m.suspected, m.isStored = suspected, func(ref model.Ref) bool {
			ref.Source = name
			for r := range p.process.store.List(model.Filter{Kind: ref.Kind, Source: name}) {
				if r.Ref == ref {
					return true
				}
			}
			return false
		}
		m.take(s)
		p.followMarks()
		p.noteState()
		p.consider()
		p.listed(name, s)
	}
	return err
}

// noteState notes that a mirror says something else now.
func (p *play) noteState() {
	now := p.telling()
	p.moved = time.Now()
	p.recent = append(p.recent, now)
	for _, c := range p.clients {
		p.forget(c, now)
	}
}

// settle lets everything happen that happens soon. What clients are sent about a source
// that has left comes later than its removal from the store.
func (p *play) settle() {
	for left := true; left; {
		p.wait()
		p.pass()
		left = p.settled()
	}
}

// settled takes over the changes that happened by themselves. It reports whether a source has left.
func (p *play) settled() (left bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followMarks()
	left = p.leave()
	p.recent = []telling{p.telling()}
	return left
}

// wait lets everything happen that happens without time going by.
func (p *play) wait() {
	for synctest.Wait(); p.process != nil && p.follow(); synctest.Wait() {
	}
}
