package istio

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// Defect G: what came while a push was under way was lost.
func TestDefectGNothingIsLostWhileAWriteIsUnderWay(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"))
	r.listed("sc")
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	api.Before(func(verb, path string) {
		if verb == "PATCH" && strings.HasSuffix(path, "/a.example") {
			once.Do(func() { close(begun); <-goOn })
		}
	})
	w := start(t, api, r, nil)
	<-begun
	for i := 2; i < 6; i++ {
		r.say(shop.Instance("sc", "a.example", fmt.Sprintf("10.0.0.%d", i)))
	}
	r.say(shop.Service("sc", "b.example"), shop.Instance("sc", "b.example", "10.0.1.1"))
	wants(t, api, "b.example", "10.0.1.1") // though a hangs
	close(goOn)
	wants(t, api, "a.example", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5")
	settled(t, w)
	if w.Status().Drift != 0 {
		t.Error("our own writes were taken for somebody else's")
	}
}

// Defects H and O: every event of an instance gave all others the union of all
// ports, made HTTP of other protocols, and changed the service's ports.
func TestDefectHAndOInstancesChangeNoPorts(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	own := func(address string, ports map[string]uint32) model.Event {
		return shop.InstanceOf("sc", "a.example", model.Endpoint{Address: address, Exact: true, Ports: model.MapOf(ports)})
	}
	r.say(shop.Service("sc", "a.example"), own("10.0.0.1", map[string]uint32{"http": 8080, "grpc": 9090}))
	r.listed("sc")
	w := start(t, api, r, nil)
	wants(t, api, "a.example", "10.0.0.1")
	ports := func() string { return fmt.Sprint(spec(api, "a.example")["ports"]) }
	before := ports()
	if !strings.Contains(before, "GRPC") {
		t.Fatalf("ports: %s", before)
	}
	r.say(own("10.0.0.2", map[string]uint32{"http": 7070}))               // not in the first object: it has no grpc
	r.say(own("10.0.0.3", map[string]uint32{"http": 8080, "grpc": 9091})) // with ports of its own
	wants(t, api, "a.example", "10.0.0.1 10.0.0.3")
	settled(t, w)
	if after := ports(); after != before {
		t.Errorf("ports were %s and are %s", before, after)
	}
	first, _ := spec(api, "a.example")["endpoints"].([]any)
	if got := fmt.Sprint(first[0]); got != "map[address:10.0.0.1 ports:map[grpc:9090 http:8080]]" {
		t.Errorf("the other instance is now %s", got)
	}
	service, _ := r.snapshot().Service(catalog.ServiceKey{Namespace: "shop", Host: "a.example"})
	objects := w.config.Translate("test", service, w.view.Exists(object.Key{Kind: object.ServiceEntry, Namespace: "shop", Name: "a.example"})).Objects
	part := objects[len(objects)-1].Name
	if got := addresses(api, part); got != "10.0.0.2" || strings.Contains(fmt.Sprint(spec(api, part)), "grpc") {
		t.Errorf("the instance without grpc is written as %v", spec(api, part))
	}
	r.say(model.Delete{Record: own("10.0.0.2", nil).(model.Upsert).Record})
	wants(t, api, part, "no object")
}
