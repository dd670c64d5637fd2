package hostile

import (
	"fmt"
	"strings"
	"testing"
)

// attack is one row of the table.
type attack struct {
	name string
	// setup prepares what the room must have; nil is the plain one.
	setup func(t *testing.T) setup
	// run attacks, and returns what was done, in numbers. It is to fail if the
	// attack does not come off, for then nothing is shown.
	run func(t *testing.T, r *room) string
	// waits says that it is mostly waiting. At full size such attacks run beside each
	// other, after the others, and spare a minute each.
	waits bool
}

// attacks are what the program is held to bear.
var attacks = []attack{
	{"silent", nil, silent, true},
	{"handshakes", withTLS, handshakes, false},
	{"unproven", withBorder, unprovenClients, false},
	{"unread", nil, unread, false},
	{"unanswered", nil, unanswered, false},
	{"garbage-bytes", nil, garbageBytes, false},
	{"garbage-frames", nil, garbageFrames, false},
	{"garbage-messages", nil, garbageMessages, false},
	{"random-requests", nil, randomRequests, false},
	{"nack", nil, nackEverything, false},
	{"streams", nil, streamStorm, false},
	{"connections", nil, connectionStorm, false},
	{"resets", nil, resetStorm, true},
	{"half-sent", nil, halfSent, false},
	{"slow-admin", nil, slowAdmin, false},
	{"unknown-names", nil, unknownNames, false},
	{"faulty-registry", withServiceCenter, faultyRegistry, true},
	{"mcp-unread", withMCP, unread, true},
	{"mcp-excess", withMCP, excessiveSinks, true},
	{"mcp-nack", withMCP, nackEverything, true},
	{"mcp-sinks", withMCP, thousandsOfSinks, true},
	{"mcp-resets", withMCP, resetStorm, true},
	{"mcp-half-sent", withMCP, halfSent, true},
	{"mcp-garbage", withMCP, garbageMessages, true},
	{"mcp-peers", withPeers("mcp"), hostilePeers, true},
	{"xds-peers", withPeers("xds"), hostilePeers, true},
	{"watch-readers", withWatch, badReaders, true},
	{"watch-unproven", withWatchBorder, unprovenChecks, true},
	{"tenants-no-acks", withTenants, tenantsWithoutACKs, false},
	{"foreign-accounts", withTenants, foreignAccounts, false},
	{"mcp-listener", withListener, silentToListener, true},
	{"drop-in-waves", withTeller, dropInWaves, true},
	{"other-halves", withTeller, otherHalves, true},
	{"bad-endpoint", withTeller, badEndpoint, true},
	{"local-endpoints", withEdge, localEndpoints, true},
	{"waiting-names", withManyNames, waitingNames, true},
	{"folder-removed", withDataDir, folderRemoved, true},
	{"large-objects", nil, largeObjects, false},
	{"kill", withDataDir, killAgainAndAgain, false},
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
