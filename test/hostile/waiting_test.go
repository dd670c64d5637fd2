package hostile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// more is how many services there are beside the others: more than a worker looks at in
// one turn.
const more = 5000

func moreHost(i int) string { return fmt.Sprintf("more-%04d.shop.example.com", i) }

// withManyNames adds a source of very many small services.
func withManyNames(t *testing.T) setup {
	t.Helper()
	var text strings.Builder
	for i := range more {
		fmt.Fprintf(&text, "---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: more-%04d, namespace: shop}\n"+
			"spec: {hosts: [%s], ports: [{number: %d, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.50.%d.%d}]}\n", i, moreHost(i), port, i/250, 1+i%250)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "more.yaml"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return setup{sources: fmt.Sprintf("- name: more\n  required: true\n  file: {path: %q}", dir)}
}

// waitingNames asks for all clusters and, by name, for their load assignments, and ACKs
// nothing. Each assignment waits for the ACK of its cluster. That costs nothing: while no
// service changes, the program uses next to no processor time.
func waitingNames(t *testing.T, r *room) string {
	const rests = 2 * time.Second
	n, opened := size(10, 2), false
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	conns, err := r.attackers(1)
	if err != nil {
		t.Fatal(err)
	}
	defer conns.close()
	names := make([]string, more)
	for i := range names {
		names[i] = fmt.Sprintf("outbound|%d||%s", port, moreHost(i))
	}
	r.beside(t, func(attack context.Context) error {
		if opened {
			return nil
		}
		opened = true
		for i := range n {
			s, err := conns.open(ctx, i, delta)
			if err != nil {
				return err
			}
			node := xdsclient.Node(fmt.Sprint("waiting-", i), "shop", "envoy")
			_ = s.SendMsg(marshal(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: xdsclient.CDS, ResourceNamesSubscribe: []string{"*"}}))
			_ = s.SendMsg(marshal(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdsclient.EDS, ResourceNamesSubscribe: names}))
			if _, err := s.receive(); err != nil {
				return err
			}
		}
		return r.awaitClients(attack, n+1)
	})
	pid := r.server.command.Process.Pid
	before := -rests // so that the first look, which has none before it, is no rest
	until.NoError(t, rests, "the program to rest", func() error {
		now := probe.CPU(t, pid)
		used := now - before
		if before = now; used > rests/2 {
			return fmt.Errorf("it used %v of processor time within %v in which nothing happened", used, rests)
		}
		return nil
	})
	return fmt.Sprintf("%d clients that ACK nothing, each with %d names that wait for an ACK", n, more)
}

// folderRemoved deletes the folder of the store again and again while everything changes. The
// program makes it anew, and starts from it after a kill.
func folderRemoved(t *testing.T, r *room) string {
	removed := 0
	r.beside(t, func(ctx context.Context) error {
		again := time.NewTicker(10 * time.Millisecond)
		defer again.Stop()
		for range size(4, 2) {
			for os.RemoveAll(r.dataDir) != nil { // something was written meanwhile
				<-again.C
			}
			removed++
			for !hasSnapshot(r.dataDir) {
				select {
				case <-again.C:
				case <-ctx.Done():
					return fmt.Errorf("there is no snapshot in the folder again: %w", ctx.Err())
				}
			}
		}
		return nil
	})
	r.awaitSaved(t)
	saved := r.registry.says()
	r.server.kill()
	bringBack := r.registry.hide(t)
	r.serve(t)
	r.mustHaveRestored(t, saved, saved)
	bringBack()
	r.good.Reconnect(true)
	r.good.awaitAll(saved)
	return fmt.Sprintf("the folder of the store removed %d times while everything changed, then a kill", removed)
}

func hasSnapshot(dir string) bool {
	found, err := filepath.Glob(filepath.Join(dir, "snapshot*"))
	return err == nil && len(found) > 0
}
