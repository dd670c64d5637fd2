package admin

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// The bounds of searches for losers.
const (
	longestSearch = 10 * time.Second
	searchPause   = 50                     // a pause after a search, in durations of that search
	searchWait    = 100 * time.Millisecond // of a request for the status
	namedLosers   = 3                      // in a finding
)

// losers finds the services that lose listeners to other services, for the status. After a
// change of a large port that takes seconds, so it is done beside the requests. At most one
// search runs at a time, and the next waits fifty times as long as it took: searches take at
// most 2 % of a core, however often the status is read. Nothing is searched while nobody
// reads it.
type losers struct {
	ctx context.Context // ends with the server
	log *slog.Logger

	mu      sync.Mutex
	running chan struct{} // closed at the end of the search that runs; nil if none does
	next    time.Time     // no search begins before
	found   lost
}

// lost is the result of a search; the zero value before the first has ended.
type lost struct {
	at       time.Time // of the request that began it
	revision uint64    // of the snapshot
	outputs  []lostAt
	failed   string // why the search has no result
}

// lostAt are the services with conflicts at the clients of an output, in order.
type lostAt struct {
	output string
	hosts  []string // that lose listeners to others
	alone  []string // with conflicts that are not with others
	first  string   // the reason of the first of these
}

func newLosers(ctx context.Context, log *slog.Logger) *losers { return &losers{ctx: ctx, log: log} }

// newest returns the result of the newest search. It begins another if it may, and waits for
// it a moment: in all but large catalogs the result is as new as the snapshot.
func (l *losers) newest(now time.Time, snapshot *catalog.Snapshot, outputs []served) lost {
	l.mu.Lock()
	if l.running == nil && !now.Before(l.next) && l.ctx.Err() == nil {
		l.running = make(chan struct{})
		go l.search(now, snapshot, outputs)
	}
	running := l.running
	l.mu.Unlock()
	if running != nil {
		wait := time.NewTimer(searchWait)
		defer wait.Stop()
		// Cases: the search has ended; it takes longer.
		select {
		case <-running:
		case <-wait.C:
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.found
}

// search searches, and notes the result and when the next search may begin.
func (l *losers) search(now time.Time, snapshot *catalog.Snapshot, outputs []served) {
	began, found := time.Now(), lost{at: now, revision: snapshot.Revision}
	defer func() {
		if value := recover(); value != nil {
			l.log.Error("panic while looking for services that lose listeners", "panic", value)
			found.outputs, found.failed = nil, fmt.Sprintf("panic: %v", value)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.found, l.next = found, time.Now().Add(searchPause*time.Since(began))
		close(l.running)
		l.running = nil
	}()
	ctx, cancel := context.WithTimeout(l.ctx, longestSearch)
	defer cancel()
	for _, o := range outputs {
		found.outputs = append(found.outputs, losersAt(ctx, snapshot, o))
	}
	if ctx.Err() != nil {
		found.outputs, found.failed = nil, fmt.Sprintf("the search takes longer than %s", longestSearch)
	}
}

func losersAt(ctx context.Context, snapshot *catalog.Snapshot, o served) lostAt {
	at := lostAt{output: o.name}
	if o.Losers == nil {
		return at
	}
	lost, alone := map[catalog.ServiceKey]struct{}{}, map[catalog.ServiceKey]string{}
	for key, c := range o.Losers(ctx, snapshot) {
		if c.Alone() {
			alone[key] = c.Reason
		} else {
			lost[key] = struct{}{}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(lost), catalog.ServiceKey.Compare) {
		at.hosts = append(at.hosts, key.Host)
	}
	for _, key := range slices.SortedFunc(maps.Keys(alone), catalog.ServiceKey.Compare) {
		at.alone = append(at.alone, key.Host)
		at.first = cmp.Or(at.first, alone[key])
	}
	return at
}

// findings adds the services that lose listeners, at each output, and how old the result is
// if the catalog has changed since then.
func (l lost) findings(f *findings, revision uint64) {
	const look = "isthmus services --conflicts"
	asOf := ""
	if old := f.now.Sub(l.at); old >= time.Second && l.revision != revision {
		asOf = ", as of " + age(f.now, l.at) + " ago"
	}
	if l.failed != "" {
		f.add(SeverityNotice, "catalog", time.Time{}, "unknown whether services lose listeners to others"+asOf+": "+l.failed, look)
	}
	for _, at := range l.outputs {
		n := len(at.alone)
		if n > 0 {
			f.add(SeverityNotice, "output "+at.output, time.Time{},
				fmt.Sprintf("%s without an address, the first is %s: %s", count(n, "service"), at.alone[0], at.first)+asOf, look+" lists all; isthmus services "+quoted(at.alone[0]))
		}
		if n = len(at.hosts); n == 0 {
			continue
		}
		first := strings.Join(at.hosts[:min(n, namedLosers)], ", ")
		text := fmt.Sprintf("1 service loses listeners or routes to another: %s", first)
		if n > 1 {
			text = fmt.Sprintf("%d services lose listeners or routes to others, the first are %s", n, first)
		}
		f.add(SeverityNotice, "output "+at.output, time.Time{}, text+asOf, look+" lists all; isthmus services "+quoted(at.hosts[0]))
	}
}
