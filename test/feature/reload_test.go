package feature_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// at is a static service with an endpoint.
func at(host, address string) service {
	return service{Host: host, Endpoints: []string{"{address: " + address + "}"}}
}

func TestSourcesComeAndGoWithTheFile(t *testing.T) {
	t.Parallel()
	first, second := newRegistry(t, "first"), newRegistry(t, "second")
	first.Write("shop.yaml", at(reviews, "192.0.2.1"))
	second.Write("shop.yaml", at(ratings, "192.0.2.2"))
	r := startReloading(t, entry{name: "first", from: first})
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(reviews))

	place(t, r.file, configOf(entry{name: "second", from: second}, entry{name: "first", from: first}))
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews)) // the file is watched
	place(t, r.file, configOf(entry{name: "first", from: first}))
	r.envoy.AwaitHeld(xdsclient.CDS, cluster(reviews))
	r.AwaitSources(entry{name: "first"})
	r.Settle()
	r.MustNotHaveReceived(reviews)
	if got := len(r.Clients()); got != 2 { // with the witness
		t.Errorf("%d clients are connected", got)
	}
}

func TestARenamedSourceIsNoBlip(t *testing.T) {
	t.Parallel()
	shop, other := newRegistry(t, "shop"), newRegistry(t, "other")
	shop.Write("shop.yaml", at(reviews, "192.0.2.1"), at(ratings, "192.0.2.2"))
	// The other source disagrees: it must not take over in between.
	other.Write("shop.yaml", service{Host: reviews, Resolution: "DNS", Endpoints: []string{"{address: a.example}"}})
	r := startReloading(t, entry{name: "old", from: shop}, entry{name: "other", from: other})
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))
	for _, name := range []string{"new", "newer", "old"} {
		r.Configure(entry{name: name, from: shop}, entry{name: "other", from: other})
	}
	r.Settle()
	r.MustNotHaveReceived(reviews)
	r.MustNotHaveReceived(ratings)
	if found := r.AwaitService(reviews, whatever); !slices.Equal(found.Sources, []string{"old"}) {
		t.Errorf("it comes from %q", found.Sources)
	}
}

func TestARemovalWaitsForWhatWasAddedWithIt(t *testing.T) {
	t.Parallel()
	shop, later, other := newRegistry(t, "shop"), newRegistry(t, "later"), newRegistry(t, "other")
	shop.Write("shop.yaml", at(reviews, "192.0.2.1"))
	// The other source disagrees: it must not take over in between.
	other.Write("shop.yaml", service{Host: reviews, Resolution: "DNS", Endpoints: []string{"{address: a.example}"}})
	later.Remove("")
	o := entry{name: "other", from: other}
	r := startReloading(t, entry{name: "old", from: shop}, o)
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(reviews))
	place(t, r.file, configOf(entry{name: "new", from: later}, o))
	r.AwaitConfig("the removal to wait", func(c admin.Config) bool {
		return len(c.Leaving) == 1 && c.Leaving[0].Source == "old" && slices.Equal(c.Leaving[0].WaitsFor, []string{"new"})
	})
	r.says("source old: not configured any more; its records stay until these are listed: new", "isthmus_config_reload_success 1")

	// As long as its records are served they are kept true.
	shop.Write("shop.yaml", at(reviews, "192.0.2.1"), at(ratings, "192.0.2.2"))
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))
	r.Settle()
	r.MustNotHaveReceived(reviews)
	whole := newRegistry(t, "whole") // an empty folder would be an answer, and a true one
	whole.Write("shop.yaml", at(reviews, "192.0.2.1"))
	later.Return(whole)
	await(t, "the rest to go", func() error {
		if got := holds(r.envoy); strings.Contains(strings.Join(got, " "), ratings) {
			return fmt.Errorf("it holds %q", got)
		}
		return nil
	})
	r.AwaitSources(entry{name: "new"}, o)
	r.MustNotHaveReceived(reviews)
}

func TestSourcesThatDisagreeChangePlaces(t *testing.T) {
	t.Parallel()
	static, dns := newRegistry(t, "static"), newRegistry(t, "dns")
	static.Write("shop.yaml", at(reviews, "192.0.2.1"), at(ratings, "192.0.2.2"))
	dns.Write("shop.yaml", service{Host: reviews, Resolution: "DNS", Endpoints: []string{"{address: a.example}"}})
	s, d := entry{name: "static", from: static}, entry{name: "dns", from: dns}
	r := startReloading(t, s, d)
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))
	r.Configure(d, s)
	r.envoy.Await("the definition of the other", func(s *xdsclient.State) bool {
		c, ok := s.Get(xdsclient.CDS, cluster(reviews))
		return ok && !c.WantsAssignment()
	})
	r.Configure(s, d)
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))
	r.Settle()
	r.MustNotHaveReceived(ratings)
	r.envoy.Read(func(s *xdsclient.State) {
		if sent, gone := s.Received(xdsclient.CDS, cluster(reviews)), s.Removals(xdsclient.CDS, cluster(reviews)); sent != 3 || gone != 0 {
			t.Errorf("the cluster was sent %d times and removed %d times", sent, gone)
		}
	})
}

func TestAnInvalidFileChangesNothing(t *testing.T) {
	t.Parallel()
	shop, other := newRegistry(t, "shop"), newRegistry(t, "other")
	shop.Write("shop.yaml", at(reviews, "192.0.2.1"))
	other.Write("shop.yaml", at(ratings, "192.0.2.2"))
	r := startReloading(t, entry{name: "shop", from: shop})
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(reviews))
	good := configOf(entry{name: "shop", from: shop}, entry{name: "other", from: other})
	place(t, r.file, good+"log: {level: loud}\n")
	r.AwaitConfig("the problem", func(c admin.Config) bool { return c.State == admin.ConfigFailed })
	const line = `isthmus.yaml:6: log.level: "loud" is none of debug, info, warn, error`
	if got := r.Config().Problems; len(got) != 1 || !strings.HasSuffix(got[0], line) {
		t.Errorf("problems %q", got)
	}
	r.says(line, "isthmus_config_reload_success 0")
	if !strings.Contains(r.log.String(), "configuration not reloaded") {
		t.Error("the log does not tell")
	}
	r.AwaitSources(entry{name: "shop"})

	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	r.AwaitConfig("the file to be missed", func(c admin.Config) bool {
		return len(c.Problems) == 1 && strings.Contains(c.Problems[0], "cannot be read")
	})
	r.Settle()
	r.MustNotHaveReceived(reviews)

	place(t, r.file, good)
	r.envoy.Await("the other's service", func(s *xdsclient.State) bool {
		_, ok := s.Get(xdsclient.EDS, cluster(ratings))
		return ok
	})
	r.AwaitConfig("the file to be fixed", func(c admin.Config) bool { return c.State == admin.ConfigLoaded && len(c.Problems) == 0 })
	r.says("ok", "isthmus_config_reload_success 1")
}

func TestWhatCannotChangeIsReported(t *testing.T) {
	t.Parallel()
	shop, other := newRegistry(t, "shop"), newRegistry(t, "other")
	shop.Write("shop.yaml", at(reviews, "192.0.2.1"))
	other.Write("shop.yaml", at(ratings, "192.0.2.2"))
	s, o := entry{name: "shop", from: shop}, entry{name: "other", from: other}
	r := startReloading(t, s)
	place(t, r.file, strings.Replace(configOf(s, o), "xds: {listen: \"127.0.0.1:0\"}", "xds: {listen: \"127.0.0.1:1\"}", 1)+"log: {level: warn}\n")
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews)) // what can change does
	r.AwaitConfig("the listener", func(c admin.Config) bool { return slices.Equal(c.NeedsRestart, []string{"outputs.xds.listen"}) })
	r.says("cannot take over: outputs.xds.listen; next: restart", "isthmus_config_reload_success 1")
	if got := <-r.logged; got.Level != "warn" {
		t.Errorf("the log is to be %+v", got)
	}
	place(t, r.file, configOf(s, o))
	r.AwaitConfig("the listener of before", func(c admin.Config) bool { return len(c.NeedsRestart) == 0 })
}

func TestReadinessFollowsWhatIsRequired(t *testing.T) {
	t.Parallel()
	shop, away := newRegistry(t, "shop"), newRegistry(t, "away")
	shop.Write("shop.yaml", at(reviews, "192.0.2.1"))
	away.Remove("")
	s, required := entry{name: "shop", from: shop}, entry{name: "away", from: away}
	r := startReloading(t, required, s)
	r.AwaitSource("shop", "live", "")
	if code, _, _ := r.get("/readyz"); code != 503 {
		t.Errorf("readiness is %d", code)
	}
	place(t, r.file, configOf(s))
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(reviews))
	place(t, r.file, configOf(required, s))
	await(t, "the source to be there", func() error {
		if _, body, err := r.get("/api/v1/sources"); err != nil || !strings.Contains(body, `"away"`) {
			return fmt.Errorf("the sources are %s %w", body, err)
		}
		return nil
	})
	r.says("ok", "isthmus_config_reload_success 1") // what is served is not taken back
}

func TestOtherSettingsKeepTheRecords(t *testing.T) {
	t.Parallel()
	before, after := newRegistry(t, "before"), newRegistry(t, "after")
	before.Write("shop.yaml", at(reviews, "192.0.2.1"))
	after.Write("moved.yaml", at(reviews, "192.0.2.1"), at(ratings, "192.0.2.2"))
	r := startReloading(t, entry{name: "shop", from: before})
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(reviews))
	r.Configure(entry{name: "shop", from: after})
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))
	r.MustNotHaveReceived(reviews)
}

// Kubernetes mounts a ConfigMap as links, and swaps the one in the middle.
func TestASwappedConfigMapIsReloaded(t *testing.T) {
	t.Parallel()
	shop, other := newRegistry(t, "shop"), newRegistry(t, "other")
	shop.Write("shop.yaml", at(reviews, "192.0.2.1"))
	other.Write("shop.yaml", at(ratings, "192.0.2.2"))
	mount := newRegistry(t, "mount") // a folder to write to
	put := func(version string, sources ...entry) {
		mount.WriteBytes("..v"+version+"/isthmus.yaml", []byte(configOf(sources...)))
		mount.Link("..v"+version, "..data_tmp")
		mount.Move("..data_tmp", "..data")
	}
	put("1", entry{name: "shop", from: shop})
	mount.Link("..data/isthmus.yaml", "isthmus.yaml")
	r := (&reloading{file: filepath.Join(mount.path, "isthmus.yaml")}).start(t, shop)
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(reviews))
	put("2", entry{name: "shop", from: shop}, entry{name: "other", from: other})
	mount.Remove("..v1")
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))
	put("3", entry{name: "other", from: other})
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings))
}

func TestAHangupReloadsWhatIsTheSame(t *testing.T) {
	t.Parallel()
	shop := newRegistry(t, "shop")
	r := startReloading(t, entry{name: "shop", from: shop})
	r.AwaitSources(entry{name: "shop"})
	before := r.Config().Loaded
	r.hangup <- syscall.SIGHUP
	r.AwaitConfig("a reload", func(c admin.Config) bool { return c.Loaded.After(before) })
}
