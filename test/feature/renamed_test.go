package feature_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/admin"
)

// Objects that are written under other names in one step are the same services: nothing is held, and
// the new definitions count at once. Hosts that disappear in such a step are held still.
func TestRenamedObjectsAreNoLoss(t *testing.T) {
	t.Parallel()
	files := newRegistry(t, "files")
	write := func(count int, prefix string, spoils service) {
		var documents []any
		for i := range count {
			s := spoils
			s.Host, s.Name = fmt.Sprintf("s%d.example", i), fmt.Sprint(prefix, i)
			s.Endpoints = []string{fmt.Sprintf("{address: 192.0.2.%d}", i+1), fmt.Sprintf("{address: 198.51.100.%d}", i+1)}
			documents = append(documents, s)
		}
		files.Write("shop.yaml", documents...)
	}
	write(12, "s", service{Ports: "[{number: 80, name: http, protocol: HTTP}]"})
	isthmus := startWith(t, holding("1h", files), files)
	isthmus.AwaitSource("files", "live", "")

	write(12, "svc-", service{Ports: "[{number: 80, name: tcp, protocol: TCP}]", ExportTo: `["."]`})
	for i := range 12 {
		isthmus.AwaitService(fmt.Sprintf("s%d.example", i), func(s admin.Service) error {
			if len(s.Records) != 1 || s.Endpoints.Total != 2 || s.Ports[0].Protocol != "TCP" || !slices.Equal(s.ExportTo, []string{"."}) {
				return fmt.Errorf("it is %+v", s)
			}
			return nil
		})
	}
	if s := isthmus.Source("files"); s.State != "live" || s.Endpoints != 24 || s.Held != 0 {
		t.Errorf("the source is %s, with %d endpoints and %d held records", s.State, s.Endpoints, s.Held)
	}

	write(5, "s", service{}) // new names again, and 14 endpoints of seven hosts are gone
	isthmus.AwaitSource("files", "held", "14 of 24 endpoints disappeared within ")
	isthmus.AwaitService("s11.example", func(s admin.Service) error {
		if s.Endpoints.Total != 2 {
			return fmt.Errorf("it is %+v", s)
		}
		return nil
	})
}
