package feature_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// Renaming a source to a folder that is there and empty takes nothing away. Once the new
// source lists enough, the old one goes, and with it what only it had.
func TestARenameToAnEmptyFolderTakesNothingAway(t *testing.T) {
	t.Parallel()
	shop, empty, other := newRegistry(t, "shop"), newRegistry(t, "empty"), newRegistry(t, "other")
	shop.Write("shop.yaml", at(reviews, "192.0.2.1"), at(ratings, "192.0.2.2"))
	o := entry{name: "other", from: other}
	r := startReloading(t, o, entry{name: "old", from: shop})
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))
	place(t, r.file, configOf(o, entry{name: "new", from: empty}))
	r.AwaitSource("old", "held", "it leaves the configuration; sources that came with that list 0 of its 2 endpoints (new); its records are served until ")
	r.AwaitSource("new", "live", "")
	r.AwaitConfig("it to be held", func(c admin.Config) bool {
		return len(c.Leaving) == 1 && c.Leaving[0].Source == "old" && c.Leaving[0].Held && len(c.Leaving[0].WaitsFor) == 0
	})
	r.says("warning: source old: 4 records held: it leaves the configuration; ", `isthmus_source_up{kind="file",source="old"} 0`)
	r.Settle()
	r.MustNotHaveReceived(reviews)
	r.MustNotHaveReceived(ratings)

	empty.Write("shop.yaml", at(reviews, "192.0.2.1"))
	await(t, "the rest to go", func() error {
		if got := holds(r.envoy); strings.Contains(strings.Join(got, " "), ratings) {
			return fmt.Errorf("it holds %q", got)
		}
		return nil
	})
	r.AwaitSources(o, entry{name: "new"})
	r.MustNotHaveReceived(reviews)
}

// What a rename has lost is given back by the old name, or given up by an operator.
func TestARenameIsTakenBackOrReleased(t *testing.T) {
	t.Parallel()
	shop, empty, other := newRegistry(t, "shop"), newRegistry(t, "empty"), newRegistry(t, "other")
	shop.Write("shop.yaml", at(reviews, "192.0.2.1"), at(ratings, "192.0.2.2"))
	o, old, renamed := entry{name: "other", from: other}, entry{name: "old", from: shop}, entry{name: "new", from: empty}
	r := startReloading(t, o, old)
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))
	place(t, r.file, configOf(o, renamed))
	r.AwaitSource("old", "held", "run: isthmus sources release old")
	r.Configure(o, old)
	r.AwaitConfig("nothing to leave", func(c admin.Config) bool { return len(c.Leaving) == 0 })
	r.Settle()
	r.MustNotHaveReceived(reviews)
	r.MustNotHaveReceived(ratings)

	place(t, r.file, configOf(o, renamed))
	r.hangup <- syscall.SIGHUP
	r.AwaitSource("old", "held", "run: isthmus sources release old")
	response, err := http.Post("http://"+r.Admin+"/api/v1/sources/old/release", "application/json", http.NoBody)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("release: %v, error %v", response, err)
	}
	_ = response.Body.Close()
	r.AwaitSources(o, renamed)
	await(t, "all of it to go", func() error {
		if got := holds(r.envoy); len(got) > 0 {
			return fmt.Errorf("it holds %q", got)
		}
		return nil
	})
}

// A source that leaves without anything in its place goes at once, all of it.
func TestASourceThatIsTakenOutGoesAtOnce(t *testing.T) {
	t.Parallel()
	shop, other := newRegistry(t, "shop"), newRegistry(t, "other")
	shop.Write("shop.yaml", at(reviews, "192.0.2.1"), at(ratings, "192.0.2.2"))
	o := entry{name: "other", from: other}
	r := startReloading(t, o, entry{name: "old", from: shop})
	r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))
	r.Configure(o)
	r.envoy.AwaitHeld(xdsclient.CDS)
}

// A rename while no process runs is judged like one by a reload.
func TestARenameBetweenTwoRunsTakesNothingAway(t *testing.T) {
	t.Parallel()
	shop, empty := newRegistry(t, "shop"), newRegistry(t, "empty")
	b, dir := startBackends(t, "one", "two"), t.TempDir()
	shop.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])}, service{Host: ratings, Endpoints: endpoints(b[1])})
	before := startWith(t, saving(loopback, dir, shop), shop)
	dial(t, before, reviews+":80", "shop").AwaitAnswers("one")
	before.Stop()

	next := startWith(t, saving(loopback, dir, empty), empty)
	next.AwaitSource("shop", "held", "it leaves the configuration; sources that came with that list 0 of its 2 endpoints (empty)")
	dial(t, next, reviews+":80", "shop").AwaitAnswers("one")
	dial(t, next, ratings+":80", "shop").AwaitAnswers("two")
	empty.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])}, service{Host: ratings, Endpoints: endpoints(b[1])})
	await(t, "the former source to go", func() error { return next.absent("shop") })
	dial(t, next, reviews+":80", "shop").AwaitAnswers("one")
}

// A process that ends while a source is held that leaves the configuration forgets nothing of
// that: the next one holds it, since the same time and by the same settings.
func TestADepartureOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *reloading, empty *registry){
		"listed": func(_ *reloading, empty *registry) {
			empty.Write("shop.yaml", at(reviews, "192.0.2.1"), at(ratings, "192.0.2.2"))
		},
		"released": func(r *reloading, _ *registry) {
			response, err := http.Post("http://"+r.Admin+"/api/v1/sources/old/release", "application/json", http.NoBody)
			if err != nil || response.StatusCode != http.StatusOK {
				r.t.Fatalf("release: %v, error %v", response, err)
			}
			_ = response.Body.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop, empty, dir := newRegistry(t, "shop"), newRegistry(t, "empty"), t.TempDir()
			shop.Write("shop.yaml", at(reviews, "192.0.2.1"), at(ratings, "192.0.2.2"))
			text := func(e entry) string {
				return strings.ReplaceAll(configOf(e), "required: ", "hold: {for: 1h}, required: ") + fmt.Sprintf("store: {dataDir: %q}\n", dir)
			}
			r := &reloading{file: filepath.Join(t.TempDir(), "isthmus.yaml"), hangup: make(chan os.Signal, 1), logged: make(chan config.Log, 10)}
			place(t, r.file, text(entry{name: "old", from: shop}))
			r.start(t, shop)
			r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))
			place(t, r.file, text(entry{name: "new", from: empty}))
			r.hangup <- syscall.SIGHUP
			r.AwaitSource("old", "held", "0 of its 2 endpoints (new)")
			held := r.Source("old")
			for range 2 {
				r.Stop()
				r.start(t, empty)
				r.AwaitSource("old", "held", "it leaves the configuration; sources that came with that list 0 of its 2 endpoints (new); its records are served until ")
				if now := r.Source("old"); !now.Since.Equal(held.Since) || now.Reason != held.Reason {
					t.Errorf("it is held since %s: %s; want %s: %s", now.Since, now.Reason, held.Since, held.Reason)
				}
				r.envoy.AwaitHeld(xdsclient.EDS, cluster(ratings), cluster(reviews))
			}
			end(r, empty)
			await(t, "the former source to go", func() error { return r.absent("old") })
		})
	}
}

// A source that is put back while it is held stays, whatever is started later.
func TestASourceThatIsPutBackIsNoDeparture(t *testing.T) {
	t.Parallel()
	shop, empty, dir := newRegistry(t, "shop"), newRegistry(t, "empty"), t.TempDir()
	shop.Write("shop.yaml", at(reviews, "192.0.2.1"), at(ratings, "192.0.2.2"))
	before := startWith(t, saving(loopback, dir, shop), shop)
	before.AwaitService(reviews, whatever)
	before.Stop()
	held := startWith(t, saving(loopback, dir, empty), empty)
	held.AwaitSource("shop", "held", "it leaves the configuration")
	held.Stop()
	back := startWith(t, saving(loopback, dir, empty, shop), shop)
	back.AwaitSource("shop", "live", "")
	back.Settle()
	back.Stop()
	next := startWith(t, saving(loopback, dir, empty), empty) // an operator takes it out, alone
	if err := next.absent("shop"); err != nil {
		t.Error(err)
	}
}

// absent returns an error while there is a source of that name.
func (i *isthmus) absent(name string) error {
	var list []admin.Source
	i.mustRead("/api/v1/sources", &list)
	if slices.ContainsFunc(list, func(s admin.Source) bool { return s.Name == name }) {
		return fmt.Errorf("%s is there: %+v", name, list)
	}
	return nil
}
