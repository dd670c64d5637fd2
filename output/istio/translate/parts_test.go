package translate

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// Whatever becomes of a service, the parts that are known from its last translation change
// nothing about its objects.
func TestObjectsAreTheSameWithAndWithoutKnownParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		builder := catalog.NewBuilder(nil)
		c := Settings{Instance: "test"}
		c.ShardSize = rapid.SampledFrom([]int{10, 50, 1000}).Draw(t, "shard size")
		c.Endpoints = rapid.SampledFrom([]Form{Inline, WorkloadEntries}).Draw(t, "form")
		exists := map[string]bool{}
		events := []model.Event{shop.Service("sc", "a.example")}
		for i := range rapid.IntRange(20, 120).Draw(t, "endpoints") {
			events = append(events, shop.InstanceOf("sc", "a.example", shop.Busy(i, "v1")))
		}
		var known Parts
		for step := range rapid.IntRange(2, 12).Draw(t, "steps") {
			builder.Apply(uint64(step+1), events) //nolint:gosec // a few
			s, ok := builder.Snapshot().Service(catalog.ServiceKey{Namespace: "shop", Host: "a.example"})
			if ok {
				known = mustBeAlike(t, c, s, exists, known)
			}
			events = []model.Event{shop.DrawEvent(t)}
		}
	})
}

func mustBeAlike(t *rapid.T, c Settings, s *catalog.Service, exists map[string]bool, known Parts) Parts {
	in := InUse{Exists: func(name string) bool { return exists[name] }}
	workloads := c.IsWorkloads(s, false)
	fresh, got := c.Service(s, workloads, in, nil), c.Service(s, workloads, in, known)
	if len(fresh.Objects) != len(got.Objects) || !slices.Equal(fresh.LeftOut, got.LeftOut) {
		t.Fatalf("%d objects, left out %v; want %d, %v", len(got.Objects), got.LeftOut, len(fresh.Objects), fresh.LeftOut)
	}
	clear(exists)
	for i, want := range fresh.Objects {
		is := got.Objects[i]
		if is.Ref() != want.Ref() || is.Fingerprint() != want.Fingerprint() || !proto.Equal(is.Whole().Spec, want.Spec) ||
			fmt.Sprint(is.Annotations, is.Labels) != fmt.Sprint(want.Annotations, want.Labels) {
			t.Fatalf("%s is %v, want %v", want.Ref(), is.Whole().Spec, want.Spec)
		}
		exists[is.Name] = true
	}
	return got.Parts
}
