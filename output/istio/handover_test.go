package istio

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/istio/dryrun"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// earlier is an object of the earlier bridge, with one instance.
const earlier = `{"hosts":["a.example"],"location":"MESH_INTERNAL","resolution":"STATIC",
	"ports":[{"name":"HTTP-80","number":80,"protocol":"HTTP","targetPort":80}],
	"endpoints":[{"address":"10.0.0.1","ports":{"HTTP-80":80},"labels":{"name":"host","instanceId":"5afe"}}]}`

func entryWith(t *testing.T, name, spec string) kubeapi.Object {
	t.Helper()
	o := kubeapi.Object{"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": kubeapi.Object{"name": name, "namespace": "shop"}}
	var s kubeapi.Object
	if err := json.Unmarshal([]byte(strings.ReplaceAll(spec, "a.example", name)), &s); err != nil {
		t.Fatal(err)
	}
	o["spec"] = s
	return o
}

// Objects of the earlier bridge are known by their form, and what only looks
// a little like one is not taken for one.
func TestObjectsOfTheEarlierBridgeAreKnown(t *testing.T) {
	t.Parallel()
	for change, is := range map[string]bool{
		"":                                     true,
		`"hosts":["a.example"]=>"hosts":["b"]`: false,
		`"hosts":["a.example"]=>"hosts":["a.example","b"]`: false,
		`MESH_INTERNAL=>MESH_EXTERNAL`:                     false,
		`STATIC=>DNS`:                                      false,
		`"HTTP-80","number"=>"http-80","number"`:           false,
		`"HTTP-80","number":80=>"HTTP-81","number":80`:     false,
		`"instanceId":"5afe"=>"version":"1"`:               false,
		`"name":"host",=>"team":"shop",`:                   false,
		`"resolution"=>"exportTo":["."],"resolution"`:      false,
	} {
		from, to, _ := strings.Cut(change, "=>")
		text := strings.ReplaceAll(earlier, from, to)
		if change == "" {
			text = earlier
		}
		body, err := json.Marshal(entryWith(t, "a.example", text))
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(body); err != nil {
			t.Fatal(err)
		}
		if got := dryrun.WrittenByEarlierBridge(u); got != is {
			t.Errorf("with %q it is taken for one: %t", change, got)
		}
	}
}

// A dry run shows of each object of the earlier bridge what would become of it, and
// leaves those of others, also of another Isthmus, without a word on that.
func TestPlanSaysWhatAHandOverWouldDo(t *testing.T) {
	t.Parallel()
	for _, listed := range []bool{true, false} {
		api, r := newAPI(t), newRegistry("sc")
		api.Put(entries+"a.example", entryWith(t, "a.example", earlier))
		api.Put(entries+"old.example", entryWith(t, "old.example", earlier))
		api.Put(entries+"empty.example", entryWith(t, "empty.example", `{"hosts":["a.example"],"location":"MESH_INTERNAL","resolution":"STATIC"}`))
		api.Put(entries+"somebody.example", entryWith(t, "somebody.example", `{"hosts":["a.example"],"location":"MESH_EXTERNAL"}`))
		others := entryWith(t, "another.example", earlier)
		others["metadata"].(kubeapi.Object)["labels"] = kubeapi.Object{object.LabelManagedBy: object.ManagedBy, object.LabelInstance: "another"}
		api.Put(entries+"another.example", others)
		r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"), shop.Service("sc", "another.example"))
		if listed {
			r.listed("sc")
		}
		before := api.Writes()
		w, err := newWriter(quick(), Options{Instance: "test", Sources: r.sources}, &rest.Config{Host: api.URL()})
		if err != nil {
			t.Fatal(err)
		}
		w.Publish(r.builder.Snapshot(), catalog.Change{}, listed)
		actions, _, err := w.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range actions {
			got = append(got, fmt.Sprintf("%s %s, then %s, %d lines", a.Verb, a.Name, a.HandOver, len(a.Diff)))
		}
		gone := "delete"
		if !listed {
			gone = "" // the source may still speak of it
		}
		want := []string{
			"leave a.example, then update, 5 lines", "leave another.example, then , 0 lines",
			"leave empty.example, then " + gone + ", 3 lines", "leave old.example, then " + gone + ", 5 lines",
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed: %t: the plan is %q", listed, got)
		}
		if after := api.Writes(); !slices.Equal(before, after) {
			t.Errorf("it wrote: %v", after[len(before):])
		}
	}
}
