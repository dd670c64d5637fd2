package app

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/internal/testkit/xdsclient"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
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
	gone       [registries]map[model.Ref]source.Object // dropped, and may come back
	wanted     []entry
	former     []entry  // wanted before the last reload
	present    []*seat  // of the sources there are, in the order of merging
	strays     []string // sources that left while another process had them
	process    *process // nil while there is none
	clients    []*client
	ledger     xdsclient.Ledger
	writers    [2]writer
	authority  *authority // nil unless the store is fed from outside
	claims     claims
	vault      vault
	offers     []*offer                   // of this process
	handed     int                        // so many, in all
	kept       map[string][]source.Object // by another system, by source
	stored     lawStore                   // of the process there is, also before it runs

	root, dir string // of everything; of the store, empty if it is kept in memory
	copies    int
	killed    time.Time
	last      *diary // of the process before this one

	mu      sync.Mutex // guards the mirrors, and what is taken note of when they change
	mirrors map[string]*mirror
	written map[model.Ref]model.Record // of the written source
	recent  []telling                  // what they said since nothing was on its way
	moved   time.Time                  // when they last said something else

	at       int       // step
	calm     bool      // time stood still since all was at rest
	followed time.Time // when somebody asked for something else by what another client holds
	wrong    string
	finish   []func()
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
	lines := []string{fmt.Sprintf("sources %+v, store %s, history %d, secrets at once %t, debounce %+v; after step %d of",
		p.script.Sources, p.script.Store, p.script.History, p.script.Vault, p.script.Debounce, p.at)}
	for i, objects := range p.script.Objects {
		for _, o := range objects {
			lines = append(lines, fmt.Sprintf("registry %d: %s", i, step{What: "put", Objects: []source.Object{o}}))
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
		p.registries[i], p.gone[i] = newRegistry(), map[model.Ref]source.Object{}
		for _, o := range objects {
			p.registries[i].objects[o.Record.Ref] = o
		}
	}
	p.writers[0].lease = "one"
	switch p.script.Store {
	case "disk":
		p.dir = filepath.Join(p.root, "data")
	case "outside":
		p.authority = newAuthority(p)
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

// took is told by readers: what has been said is stored, or it has failed.
func (p *play) took(name string, store func() error, s said) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	suspected := p.suspected(name)
	err := store()
	if m := p.mirrors[name]; err == nil && m != nil {
		m.suspect = suspected
		m.take(s)
		p.told()
		p.listed(name, s)
	}
	return err
}

// told notes that a mirror says something else now.
func (p *play) told() {
	now := p.telling()
	p.moved = time.Now()
	p.recent = append(p.recent, now)
	for _, c := range p.clients {
		p.forgive(c, now)
	}
}

// settle lets everything happen that happens soon.
func (p *play) settle() {
	p.wait()
	p.pass()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range slices.Clone(p.present) {
		if m.leaving && !slices.ContainsFunc(m.waits, func(name string) bool { return !p.primed(name) }) {
			if p.claims.others(m.Name) {
				m.halted = true
				continue
			}
			p.present = slices.DeleteFunc(p.present, func(o *seat) bool { return o == m })
			delete(p.mirrors, m.Name)
			p.offers = slices.DeleteFunc(p.offers, func(o *offer) bool { return o.Source == m.Name })
		}
	}
	p.recent = []telling{p.telling()}
}

// wait lets everything happen that happens without time going by.
func (p *play) wait() {
	for synctest.Wait(); p.process != nil && p.follow(); synctest.Wait() {
	}
}

// comeToRest mends everything, and gives it the time that it takes until
// registries are believed. New clients come then, and a new process.
func (p *play) comeToRest() {
	p.at = len(p.script.Steps)
	p.claims.give()
	if !p.vault.published {
		p.vault.publish()
	}
	if p.process != nil && len(p.strays) > 0 { // they go at a start
		p.stop(false)
	}
	if p.process == nil {
		p.start()
	}
	for _, r := range p.registries {
		r.become(func() { clear(r.faults) })
		r.turn(up, news{})
	}
	for _, c := range p.clients {
		c.holds = false
		c.Release()
	}
	time.Sleep(10 * time.Minute)
	p.settle()
	for _, e := range p.wanted {
		p.mustSay(p.mirrors[e.Name], p.registries[e.Registry])
	}
	p.lookAtOffers(true)
	if len(p.present) != len(p.wanted) {
		p.Fatalf("%d sources stay, but %d are wanted", len(p.present), len(p.wanted))
	}
	for _, c := range p.clients {
		if c.away {
			p.reconnect(c, true)
		}
	}
	p.calm = false
	p.rest()
	for _, delta := range []bool{false, true} {
		n := p.script.Clients[0]
		n.Delta = delta
		p.connect(n)
	}
	p.rest()
	if p.dir != "" || p.authority != nil {
		p.beginAgain()
	}
	for _, c := range p.clients {
		c.Close()
	}
}

// beginAgain has clients come back to a process that knows nothing but what is
// on disk. They are sent nothing.
func (p *play) beginAgain() {
	time.Sleep(time.Second)
	for _, r := range p.registries {
		r.turn(stuck)
	}
	p.stop(p.script.Steps[0].Keep)
	before := map[*client]map[string]int{}
	for _, c := range p.clients {
		before[c] = c.sent()
	}
	p.start()
	p.calm = true
	p.rest()
	for _, c := range p.clients {
		if after := c.sent(); c.Delta && !c.Picky && !maps.Equal(before[c], after) {
			p.Fatalf("%s is sent something after a restart: %v before, %v now", c.name, before[c], after)
		}
	}
}

// sent counts what a client was sent and what was taken from it.
func (c *client) sent() map[string]int {
	counts := map[string]int{}
	c.Read(func(s *xdsclient.State) {
		for typeURL, name := range holdings(s) {
			counts[typeURL+name] = s.Received(typeURL, name) + s.Removals(typeURL, name)
		}
	})
	return counts
}

// mustSay makes sure that a source is nothing but what its registry says.
func (p *play) mustSay(m *mirror, r *registry) {
	want := r.mirror(m.hold)
	if !m.primed || len(m.held) > 0 || !slices.Equal(want.lines(), m.lines()) {
		p.Fatalf("in the end a source holds\n%s\nbut its registry says\n%s", strings.Join(m.lines(), "\n"), strings.Join(want.lines(), "\n"))
	}
}

// mirror is that of a source which has read nothing but what a registry says now.
func (r *registry) mirror(hold source.Hold) *mirror {
	m := newMirror(hold)
	_, plain := r.listing()
	m.take(plain)
	return m
}

// lines is what must be stored, for the eye.
func (m *mirror) lines() []string {
	var lines []string
	for ref, r := range m.records() {
		_, held := m.held[ref]
		lines = append(lines, line(ref, r.Spec, held))
	}
	slices.Sort(lines)
	return lines
}

func line(ref model.Ref, spec model.Spec, held bool) string {
	return fmt.Sprintf("%s %s: %+v, held %t", ref.Kind, ref.Key, spec, held)
}

// seat is a source that is there, wanted or not.
type seat struct {
	entry
	leaving bool
	halted  bool     // it may leave, but another process has it
	waits   []string // sources that have to be listed before it may leave
}

func (p *play) seat(name string) *seat {
	if i := slices.IndexFunc(p.present, func(m *seat) bool { return m.Name == name }); i >= 0 {
		return p.present[i]
	}
	return nil
}

func (p *play) primed(name string) bool { m := p.mirrors[name]; return m != nil && m.primed }

// reload gives the application another configuration. Sources that are not in
// it leave once those that are new have been listed.
func (p *play) reload(wanted []entry) {
	p.settle()
	p.calm = p.calm && p.isGentle(wanted)
	for _, c := range p.clients {
		c.held = nil // it may be served first what is taken away then, rightly
	}
	p.reseat(wanted)
	p.former, p.wanted, p.process.loose = p.wanted, wanted, true
	p.process.hangup <- syscall.SIGHUP
	p.settle()
}

func (p *play) reseat(wanted []entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names, fresh, present []string
	for _, e := range wanted {
		names = append(names, e.Name)
		if !slices.ContainsFunc(p.wanted, func(was entry) bool { return was.Name == e.Name }) {
			fresh = append(fresh, e.Name)
		}
	}
	for _, m := range p.present {
		present = append(present, m.Name)
		if m.leaving = !slices.Contains(names, m.Name); m.leaving {
			m.waits = slices.DeleteFunc(m.waits, func(name string) bool { return !slices.Contains(names, name) })
			m.waits = append(m.waits, fresh...)
		} else {
			m.waits = nil
		}
	}
	for _, e := range wanted {
		m := p.seat(e.Name)
		switch {
		case m == nil && slices.Contains(p.strays, e.Name):
			p.mirrors[e.Name].restart(e.Hold)
			p.strays = slices.DeleteFunc(slices.Clone(p.strays), func(name string) bool { return name == e.Name })
			m = &seat{}
			p.present = append(p.present, m)
		case m == nil:
			p.mirrors[e.Name] = newMirror(e.Hold)
			m = &seat{}
			p.present = append(p.present, m)
		case m.Hold != e.Hold || m.Registry != e.Registry || m.halted:
			p.mirrors[e.Name].restart(e.Hold)
			m.halted = false
		}
		m.entry = e
	}
	order := mergeOrder(present, names)
	slices.SortStableFunc(p.present, func(a, b *seat) int { return slices.Index(order, a.Name) - slices.Index(order, b.Name) })
}

// isOne reports whether a step leads to one commit at most, and is the only one
// since all was at rest: nothing that stays in view may flicker then.
func (p *play) isOne(s step) bool {
	readers := 0
	for _, m := range p.present {
		if m.Registry == s.Registry {
			readers++
		}
	}
	return readers < 2 && (p.at == 0 || p.script.Steps[p.at-1].Rest)
}

// isGentle reports whether another configuration takes effect in one step, or
// in steps that make no difference: at most one source goes, and who comes in
// its place says the same.
func (p *play) isGentle(wanted []entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var come, gone []entry
	for _, e := range wanted {
		switch m := p.seat(e.Name); {
		case m == nil:
			come = append(come, e)
		case m.Hold != e.Hold || m.Registry != e.Registry || m.halted:
			return false
		}
	}
	for _, m := range p.present {
		if !slices.ContainsFunc(wanted, func(e entry) bool { return e.Name == m.Name }) {
			gone = append(gone, m.entry)
		}
	}
	if len(p.strays) > 0 { // one that comes may be there already
		return false
	}
	if len(come) == 0 || len(gone) != 1 || len(come) != 1 {
		return len(come) == 0 && len(gone) < 2
	}
	m, r := p.mirrors[gone[0].Name], p.registries[come[0].Registry]
	return m.primed && r.mode == up && len(r.faults) == 0 && slices.Equal(m.lines(), r.mirror(m.hold).lines())
}

// renamed is the configuration with another name for one source.
func (p *play) renamed(which int) []entry {
	wanted := slices.Clone(p.wanted)
	for _, name := range []string{"a", "b", "c", "d"} {
		if p.seat(name) == nil {
			wanted[which%len(wanted)].Name = name
			break
		}
	}
	return wanted
}

// rotated is the configuration in another order.
func (p *play) rotated(which int) []entry {
	n := which % len(p.wanted)
	return slices.Concat(p.wanted[n:], p.wanted[:n])
}
