package istio

import (
	"fmt"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// content is what objects say, by name.
func content(objects []object.Object) map[string]object.Fingerprint {
	all := map[string]object.Fingerprint{}
	for _, o := range objects {
		all[o.Name] = o.Fingerprint()
	}
	return all
}

// An instance that comes or goes rewrites one object, of however many.
func TestOneInstanceIsOneObject(t *testing.T) {
	c := DefaultConfig()
	c.ShardSize = 50
	names := map[string]bool{}
	exists := func(name string) bool { return names[name] }
	before := content(c.Translate("test", shop.Fleet(1000, nil), exists).Objects)
	for name := range before {
		names[name] = true
	}
	after := content(c.Translate("test", shop.Fleet(1001, nil), exists).Objects)
	changed := 0
	for name, says := range after {
		if before[name] != says {
			changed++
		}
	}
	if changed != 1 || len(before) != len(after) || len(before) != 32 {
		t.Errorf("%d of %d objects changed, there were %d", changed, len(after), len(before))
	}
}

// No object is larger than etcd takes, whatever endpoints say of themselves.
func TestObjectsFitIntoARequest(t *testing.T) {
	labels := map[string]string{}
	for i := range 60 {
		labels[fmt.Sprintf("label-%d", i)] = strings.Repeat("x", 60)
	}
	c := DefaultConfig()
	c.ShardSize = mostEndpoints
	objects := c.Translate("test", shop.Fleet(2500, labels), func(string) bool { return false }).Objects
	total := 0
	for _, o := range objects {
		total += len(o.Spec.(*networking.ServiceEntry).GetEndpoints())
		if size := len(manifestOf(t, o)); size > 3<<19 {
			t.Errorf("%s is %d bytes", o.Name, size)
		}
	}
	if total != 2500 || len(objects) < 8 {
		t.Errorf("%d endpoints in %d objects", total, len(objects))
	}
}
