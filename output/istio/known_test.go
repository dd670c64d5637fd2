package istio

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
)

// Whatever becomes of a large service, what is remembered of its objects changes
// nothing about them: they are what they would be without a memory.
func TestObjectsAreTheSameWithAndWithoutAMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		builder := catalog.NewBuilder(nil)
		c := DefaultConfig()
		c.ShardSize = rapid.SampledFrom([]int{10, 50, 1000}).Draw(t, "shard size")
		c.Endpoints = rapid.SampledFrom([]Form{Inline, WorkloadEntries}).Draw(t, "form")
		w := &Writer{config: c, options: Options{Instance: "test"}}
		key := Key{ServiceEntry, "shop", "a.example"}
		exists := map[string]bool{}
		events := []model.Event{service("sc", "a.example")}
		for i := range rapid.IntRange(20, 120).Draw(t, "endpoints") {
			events = append(events, instanceOf("sc", "a.example", busy(i, "v1")))
		}
		for step := range rapid.IntRange(2, 12).Draw(t, "steps") {
			builder.Apply(uint64(step+1), events) //nolint:gosec // a few
			s, ok := builder.Snapshot().Service(catalog.ServiceKey{Namespace: "shop", Host: "a.example"})
			if ok {
				mustBeAlike(t, w, key, s, exists)
			}
			events = []model.Event{drawEvent(t)}
		}
	})
}

func mustBeAlike(t *rapid.T, w *Writer, key Key, s *catalog.Service, exists map[string]bool) {
	used := func(name string) bool { return exists[name] }
	fresh, got := w.config.Translate("test", s, used), w.translate(key, s, w.config.isWorkloads(s, false), inUse{exists: used})
	if len(fresh.Objects) != len(got.Objects) || !slices.Equal(fresh.LeftOut, got.LeftOut) {
		t.Fatalf("%d objects, left out %v; want %d, %v", len(got.Objects), got.LeftOut, len(fresh.Objects), fresh.LeftOut)
	}
	clear(exists)
	for i, want := range fresh.Objects {
		is := got.Objects[i]
		if is.Ref() != want.Ref() || is.fingerprint() != want.fingerprint() || !proto.Equal(is.whole().Spec, want.Spec) ||
			fmt.Sprint(is.Annotations, is.Labels) != fmt.Sprint(want.Annotations, want.Labels) {
			t.Fatalf("%s is %v, want %v", want.Ref(), is.whole().Spec, want.Spec)
		}
		exists[is.Name] = true
	}
}

// drawEvent draws a change of an endpoint, or of what the service says.
func drawEvent(t *rapid.T) model.Event {
	i := rapid.IntRange(0, 130).Draw(t, "endpoint")
	e := busy(i, rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "version"))
	switch rapid.IntRange(0, 5).Draw(t, "change") {
	case 0:
		return noInstance("sc", "a.example", e.Address)
	case 1:
		e.Health = model.Unhealthy
	case 2: // it serves one port only
		e.Ports, e.Exact = model.MapOf(map[string]uint32{"http": 8080}), true
	case 3:
		e.Ports = model.MapOf(map[string]uint32{"http": uint32(8000 + i)}) //nolint:gosec // small
	case 4:
		up, _ := service("sc", "a.example").(model.Upsert)
		spec, _ := up.Record.Spec.(model.Service)
		spec.ExportTo = model.ListOf(rapid.SampledFrom([]string{".", "*"}).Draw(t, "exported to"))
		up.Record.Spec = spec
		return up
	}
	return instanceOf("sc", "a.example", e)
}

// An object that is not made anew, since nothing about it has changed, is made
// after all when somebody has changed what was written.
func TestDriftOfALargeServiceIsRestored(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.say(service("sc", "a.example"))
	for i := range 200 {
		r.say(instanceOf("sc", "a.example", busy(i, "v1")))
	}
	r.listed("sc")
	w := start(t, api, r, nil)
	settled(t, w)
	for path, o := range api.Everything() {
		before := addressesIn(o)
		spec, _ := o["spec"].(kubeapi.Object)
		spec["endpoints"] = []any{kubeapi.Object{"address": "192.0.2.1"}}
		api.Put(path, o)
		await(t, path+" to be restored", func() error {
			if after := addressesIn(api.Get(path)); after != before {
				return errors.New(after)
			}
			return nil
		})
	}
	await(t, "the drift to be counted", func() error {
		if got := w.Status().Drift; got != 2 {
			return fmt.Errorf("drift %d, want one of each object", got)
		}
		return nil
	})
}
