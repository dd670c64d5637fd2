package feature_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// saving is a configuration that keeps the last known good in a folder.
func saving(listen, dir string, registries ...*registry) string {
	return configFor(listen, registries) + fmt.Sprintf("store: {dataDir: %q}\n", dir)
}

// TestLastKnownGoodIsServedAfterARestart restarts while the registry is out of
// reach. Everything goes on as before, for clients old and new.
func TestLastKnownGoodIsServedAfterARestart(t *testing.T) {
	t.Parallel()
	files, b, dir := newRegistry(t, "files"), startBackends(t, "one", "two"), t.TempDir()
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])}, service{Host: ratings, Endpoints: endpoints(b[0])})
	before := startWith(t, saving(loopback, dir, files), files)
	envoy := xdsclient.NewDelta(t, channel(t, before), xdsclient.Config{
		Node: xdsclient.Node("envoy", "shop", "envoy"), Follow: xdsclient.FollowClusters,
	})
	envoy.Subscribe(xdsclient.CDS)
	envoy.AwaitHeld(xdsclient.CDS, cluster(reviews), cluster(ratings))
	awaitPorts(envoy, reviews, b[0])
	awaitPorts(envoy, ratings, b[0])
	client := dial(t, before, reviews+":80", "shop")
	client.AwaitAnswers("one")
	calls := client.KeepCalling()
	envoy.Disconnect()
	before.Stop()

	files.Move("", "../unmounted")
	after := startWith(t, saving(before.XDS, dir, files), files)
	after.AwaitSource("files", "stale", "serving the last known good from 20")
	await(t, "an Isthmus that serves the last known good to be ready", func() error {
		if code, body, err := after.get("/readyz?verbose"); code != 200 || !strings.Contains(body, "store: revision ") || err != nil {
			return fmt.Errorf("%d %s %w", code, body, err)
		}
		return nil
	})
	dial(t, after, reviews+":80", "shop").AwaitAnswers("one")
	sentNothing(t, envoy, func() {
		envoy.Reconnect(true)
		for _, kind := range []string{xdsclient.CDS, xdsclient.EDS} {
			envoy.Quiet(kind, cluster("nobody.example"))
		}
	})
	client.AwaitAnswers("one")

	files.Move("../unmounted", "")
	after.AwaitSource("files", "live", "")
	sentNothing(t, envoy, after.Settle)
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	client.AwaitAnswers("two")
	awaitPorts(envoy, reviews, b[1])
	calls.MustNotHaveFailed()
}

// sentNothing expects a client to be sent nothing it holds while something happens.
func sentNothing(t *testing.T, c *xdsclient.Client, during func()) {
	t.Helper()
	count := func() (got string) {
		c.Read(func(s *xdsclient.State) {
			for _, kind := range []string{xdsclient.CDS, xdsclient.EDS} {
				for _, host := range []string{reviews, ratings} {
					got += fmt.Sprintf("%s of %s: sent %d times, removed %d times\n", kind, host,
						s.Received(kind, cluster(host)), s.Removals(kind, cluster(host)))
				}
			}
		})
		return got
	}
	before := count()
	during()
	if after := count(); after != before {
		t.Errorf("what was sent became\n%safter\n%s", after, before)
	}
}

// TestKilledProcessLosesNothingOnDisk kills the program itself.
func TestKilledProcessLosesNothingOnDisk(t *testing.T) {
	t.Parallel()
	files, one, dir := newRegistry(t, "files"), startBackend(t, "one"), t.TempDir()
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(one)})
	program := build(t)
	killed := startProcess(t, program, saving(loopback, dir, files))
	killed.isthmus.AwaitSource("files", "live", "")
	await(t, "everything to be on disk", func() error {
		_, body, err := killed.isthmus.get("/metrics")
		if !strings.Contains(body, "\nisthmus_store_saved_revision 1\n") || !strings.Contains(body, "\nisthmus_store_save_lag_seconds 0\n") {
			return fmt.Errorf("not yet: %w", err)
		}
		return nil
	})
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	files.Remove("")
	next := startProcess(t, program, saving(loopback, dir, files))
	dial(t, next.isthmus, reviews+":80", "shop").AwaitAnswers("one")
	next.isthmus.AwaitSource("files", "stale", "no such file or directory; trying again within")
	next.isthmus.AwaitSource("files", "stale", "until then serving the last known good from 20")

	second, err := app.New(t.Context(), load(t, saving(loopback, dir, files)), "test", slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "store.dataDir: ") || !strings.Contains(err.Error(), strconv.Itoa(next.Process.Pid)) {
		t.Errorf("a second Isthmus on the folder: %v, error %v; want one that names process %d", second, err, next.Process.Pid)
	}
	for _, i := range []*isthmus{killed.isthmus, next.isthmus} {
		for _, end := range i.clients {
			end()
		}
	}
}

// TestSourceThatIsNotConfiguredAnyMoreIsForgotten takes a registry out of the configuration.
func TestSourceThatIsNotConfiguredAnyMoreIsForgotten(t *testing.T) {
	t.Parallel()
	first, second := newRegistry(t, "first"), newRegistry(t, "second")
	b, dir := startBackends(t, "one", "two"), t.TempDir()
	first.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	second.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])}, service{Host: ratings, Endpoints: endpoints(b[1])})
	before := startWith(t, saving(loopback, dir, first, second), first, second)
	client, gone := dial(t, before, reviews+":80", "shop"), dial(t, before, ratings+":80", "shop")
	client.AwaitAnswers("one", "two")
	gone.AwaitAnswers("two")
	before.Stop()
	startWith(t, saving(before.XDS, dir, first), first)
	client.AwaitAnswers("one")
	gone.AwaitFailure(ratings + ":80")
}

// TestDamagedJournalCostsNothingThatIsWhole breaks what was saved last. What was
// saved before is there, but served only once the registry has been listed, and
// then nothing is deleted but what the registry does not say.
func TestDamagedJournalCostsNothingThatIsWhole(t *testing.T) {
	t.Parallel()
	files, b, dir := newRegistry(t, "files"), startBackends(t, "one", "two"), t.TempDir()
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	before := startWith(t, saving(loopback, dir, files), files)
	client := dial(t, before, reviews+":80", "shop")
	client.AwaitAnswers("one")
	before.Stop()
	between := startWith(t, saving(before.XDS, dir, files), files)
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	client.AwaitAnswers("two")
	between.Stop()
	journals, err := filepath.Glob(filepath.Join(dir, "journal-*"))
	if err != nil || len(journals) == 0 {
		t.Fatalf("%q, error %v", journals, err)
	}
	newest := slices.Max(journals)
	text, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(text, []byte(`"address"`))
	if at < 0 {
		t.Fatalf("no address is in %s", newest)
	}
	text[at+2] ^= 1
	if err := os.WriteFile(newest, text, 0o600); err != nil {
		t.Fatal(err)
	}
	files.Move("", "../unmounted")
	after := startWith(t, saving(before.XDS, dir, files), files)
	after.AwaitSource("files", "listing", "no such file or directory")
	dial(t, after, reviews+":80", "shop").AwaitFailure("not primed yet")
	if code, body, err := after.get("/readyz?verbose"); code != 503 || !strings.Contains(body, "checksum differs") || !strings.Contains(body, "are lost") || err != nil {
		t.Errorf("readiness is %d %s %v; want the damage reported", code, body, err)
	}
	if code, body, err := after.get("/api/v1/services/" + reviews); code != 200 || !strings.Contains(body, "instances") || err != nil {
		t.Errorf("the service is %d %s %v; want what was saved before the damage", code, body, err)
	}
	if log := after.log.String(); !strings.Contains(log, "an earlier state of it is restored") || !strings.Contains(log, ".damaged-20") {
		t.Errorf("the log does not say what became of the files: %s", log)
	}
	files.Move("../unmounted", "")
	client.AwaitAnswers("two")
}

// TestDamagedFilesAreReportedAndNotServed breaks what is on disk. The start is
// then as without it: nothing is served before the registry is listed.
func TestDamagedFilesAreReportedAndNotServed(t *testing.T) {
	t.Parallel()
	files, one, dir := newRegistry(t, "files"), startBackend(t, "one"), t.TempDir()
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(one)})
	before := startWith(t, saving(loopback, dir, files), files)
	client := dial(t, before, reviews+":80", "shop")
	client.AwaitAnswers("one")
	before.Stop()
	snapshots, err := filepath.Glob(filepath.Join(dir, "snapshot-*"))
	if err != nil || len(snapshots) != 1 {
		t.Fatalf("%q, error %v", snapshots, err)
	}
	if err := os.WriteFile(snapshots[0], []byte("isthmus store 1\nrubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	files.Move("", "../unmounted")
	after := startWith(t, saving(before.XDS, dir, files), files)
	after.AwaitSource("files", "listing", "no such file or directory")
	dial(t, after, reviews+":80", "shop").AwaitFailure("not primed yet")
	if code, body, err := after.get("/readyz?verbose"); code != 503 || !strings.Contains(body, "is damaged") || err != nil {
		t.Errorf("readiness is %d %s %v; want the damage reported", code, body, err)
	}
	if log := after.log.String(); !strings.Contains(log, "the last known good cannot be used") || !strings.Contains(log, ".damaged-20") {
		t.Errorf("the log does not say what became of the files: %s", log)
	}
	files.Move("../unmounted", "")
	client.AwaitAnswers("one")
}
