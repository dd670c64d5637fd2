package hostile

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// attack is one row of the table.
type attack struct {
	name string
	// setup prepares what the room must have; nil is the plain one.
	setup func(t *testing.T) setup
	// run attacks, and returns what was done, in numbers. It is to fail if the
	// attack does not come off, for then nothing is shown.
	run func(t *testing.T, r *room) string
	// late bounds the median of how long the good client waits for a change, and
	// /readyz for its answer, beside the attack.
	late time.Duration
	// waits says that it is mostly waiting. At full size such attacks run beside each
	// other, after the others, and spare a minute each.
	waits bool
}

// slower is how many times what a change takes in quiet is added to that, for
// the machine may be busy with other things.
const slower = 20

// attacks are what the program is held to bear. A late bound is far above what
// is measured on two cores that attackers, program and good client share. The worst of
// all may be ten times that: it is there to tell slower from stopped, also where the
// machine has other things to do for a while.
var attacks = []attack{
	{"silent", nil, silent, 2 * time.Second, true},
	{"handshakes", withTLS, handshakes, 2 * time.Second, false},
	{"unproven", withBorder, unprovenClients, 2 * time.Second, false},
	{"unread", nil, unread, 2 * time.Second, false},
	{"unanswered", nil, unanswered, 2 * time.Second, false},
	{"garbage-bytes", nil, garbageBytes, 2 * time.Second, false},
	{"garbage-frames", nil, garbageFrames, 2 * time.Second, false},
	{"garbage-messages", nil, garbageMessages, 2 * time.Second, false},
	{"random-requests", nil, randomRequests, 2 * time.Second, false},
	{"nack", nil, nackEverything, 2 * time.Second, false},
	{"streams", nil, streamStorm, 2 * time.Second, false},
	{"connections", nil, connectionStorm, 2 * time.Second, false},
	{"resets", nil, resetStorm, 2 * time.Second, true},
	{"half-sent", nil, halfSent, 2 * time.Second, false},
	{"slow-admin", nil, slowAdmin, 2 * time.Second, false},
	{"unknown-names", nil, unknownNames, 2 * time.Second, false},
	{"faulty-registry", withServiceCenter, faultyRegistry, 2 * time.Second, true},
	{"mcp-unread", withMCP, unread, 2 * time.Second, true},
	{"mcp-excess", withMCP, excessiveSinks, 2 * time.Second, true},
	{"mcp-nack", withMCP, nackEverything, 2 * time.Second, true},
	{"mcp-sinks", withMCP, thousandsOfSinks, 2 * time.Second, true},
	{"mcp-resets", withMCP, resetStorm, 2 * time.Second, true},
	{"mcp-half-sent", withMCP, halfSent, 2 * time.Second, true},
	{"mcp-garbage", withMCP, garbageMessages, 2 * time.Second, true},
	{"mcp-peers", withPeers("mcp"), hostilePeers, 2 * time.Second, true},
	{"xds-peers", withPeers("xds"), hostilePeers, 2 * time.Second, true},
	{"watch-readers", withWatch, badReaders, 2 * time.Second, true},
	{"mcp-listener", withListener, silentToListener, 2 * time.Second, true},
	{"drop-in-waves", withTeller, dropInWaves, 2 * time.Second, true},
	{"other-halves", withTeller, otherHalves, 2 * time.Second, true},
	{"bad-endpoint", withTeller, badEndpoint, 2 * time.Second, true},
	{"local-endpoints", withEdge, localEndpoints, 2 * time.Second, true},
	{"waiting-names", withManyNames, waitingNames, 2 * time.Second, true},
	{"folder-removed", withDataDir, folderRemoved, 2 * time.Second, true},
	{"large-objects", nil, largeObjects, 2 * time.Second, false},
	{"kill", withDataDir, killAgainAndAgain, 10 * time.Second, false},
}

func TestAttacks(t *testing.T) {
	if raced {
		t.Skip("the program that is attacked is built without the race detector, which needs more memory than the limit")
	}
	results := make([]*figures, len(attacks))
	if *full {
		t.Cleanup(func() { fmt.Println(table(results)) })
	}
	for i, a := range attacks {
		results[i] = &figures{name: a.name}
		t.Run(a.name, func(t *testing.T) {
			if a.waits || !*full {
				t.Parallel()
			}
			results[i].ok = a.hold(t, results[i])
		})
	}
}

// hold runs an attack and holds the program to its bounds.
func (a attack) hold(t *testing.T, f *figures) bool {
	var s setup
	if a.setup != nil {
		s = a.setup(t)
	}
	r := open(t, s, f)
	r.quiet(t)
	before := r.server.metrics(t)
	r.server.forgetPeak(t)
	f.did = a.run(t, r)
	f.peak = max(f.peak, r.server.peak(t))
	after := r.server.metrics(t)
	f.rejected = after.Sum(rejected) - before.Sum(rejected)
	f.delayed = after.Sum(delayed) - before.Sum(delayed)
	r.settle(t, before.Sum("go_goroutines"))
	r.good.Close()
	if err := r.server.stop(); err != nil {
		t.Errorf("the program ended badly: %v", err)
	}
	a.judge(t, f)
	return !t.Failed()
}

const (
	rejected = "isthmus_streams_rejected_total"
	delayed  = "isthmus_requests_delayed_total"
)

func (a attack) judge(t *testing.T, f *figures) {
	t.Helper()
	if f.peak >= allowance {
		t.Errorf("the program needed %.0f MiB, it may need %d", f.peak/mib, allowance>>20)
	}
	if len(f.beside) < fewest {
		t.Errorf("%d changes were made beside the attack, which shows nothing", len(f.beside))
	}
	if !*full {
		return // the attacks ran beside each other
	}
	late, stopped := a.late+slower*f.quiet.quantile(0.5), 10*a.late+slower*f.quiet.quantile(0.5)
	for what, times := range map[string]sample{"the good client waited for a change": f.beside, "/readyz took to answer": f.ready} {
		if half := times.quantile(0.5); half > late {
			t.Errorf("%s: half of the times %v or more, it may be %v", what, half, late)
		}
		if worst := times.quantile(1); worst > stopped {
			t.Errorf("%s: at worst %v, it may be %v", what, worst, stopped)
		}
	}
}

// table shows what was measured.
func table(results []*figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Limit of memory: RLIMIT_DATA of %d MiB, in force for every process; peak is VmHWM.\n", allowance>>20)
	b.WriteString("Change: a file is in place → the good client has ACKed it, in ms.\n\n")
	const row = "%-17s %-4s %8v %9v %9v %10v %10v %8v %8v %8v %8v  %s\n"
	fmt.Fprintf(&b, row, "attack", "", "peak MiB", "quiet p50", "quiet max", "beside p50", "beside max", "changes", "/readyz", "refused", "delayed", "what was done")
	for _, f := range results {
		if len(f.quiet) == 0 {
			continue // it was not chosen
		}
		fmt.Fprintf(&b, row, f.name, map[bool]string{true: "ok", false: "FAIL"}[f.ok], int(f.peak/mib), ms(f.quiet.quantile(0.5)), ms(f.quiet.quantile(1)),
			ms(f.beside.quantile(0.5)), ms(f.beside.quantile(1)), len(f.beside), ms(f.ready.quantile(1)), f.rejected, f.delayed, f.did)
	}
	return b.String()
}
