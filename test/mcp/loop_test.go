package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// side is one of two Isthmuses that read each other, with a folder of its own.
type side struct {
	*isthmus

	region, folder string
	xds, mcp       string // addresses
}

// Write writes a service of its region, with its endpoints.
func (s *side) Write(name string, endpoints ...string) {
	s.t.Helper()
	text := fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  hosts: [%[1]s.%[2]s.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [%[3]s]
`, name, s.region, strings.Join(endpoints, ", "))
	path := filepath.Join(s.folder, name+".yaml")
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		s.t.Fatal(err)
	}
}

// start starts it on its folder and the other side, which it reads as a source of a kind.
func (s *side) start(t *testing.T, kind string, other *side) {
	t.Helper()
	read := fmt.Sprintf("xds: {address: %q}", other.xds)
	if kind == "mcp" {
		read = fmt.Sprintf("mcp: {address: %q, incremental: true}", other.mcp)
	}
	s.isthmus = start(t, fmt.Sprintf(`instance: %s
sources:
- name: files
  file: {path: %s}
- name: %s
  required: false
  %s
outputs:
  xds: {listen: %q}
  mcp: {listen: %q}
`, s.region, s.folder, other.region, read, s.xds, s.mcp))
}

// TestTwoThatReadEachOtherKeepNoGhosts has two Isthmuses read each other. What one's
// registry loses is gone from both, also after a restart, by which each has what the
// other had of it.
func TestTwoThatReadEachOtherKeepNoGhosts(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"xds", "mcp"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			newSide := func(region string) *side {
				s := &side{isthmus: &isthmus{t: t}, region: region, folder: t.TempDir(), xds: freeAddress(t), mcp: freeAddress(t)}
				s.Write("web", "{address: 10.0.0.1}", "{address: 10.0.0.2}")
				s.Write("gone", "{address: 10.0.1.1}")
				return s
			}
			west, east := newSide("west"), newSide("east")
			west.start(t, kind, east)
			east.start(t, kind, west)
			both := func(want map[string][2]int) {
				t.Helper()
				west.services(want)
				east.services(want)
			}
			both(map[string][2]int{"web.west.example": {2, 2}, "gone.west.example": {1, 1}, "web.east.example": {2, 2}, "gone.east.example": {1, 1}})

			west.Write("web", "{address: 10.0.0.2}")
			both(map[string][2]int{"web.west.example": {1, 1}, "gone.west.example": {1, 1}, "web.east.example": {2, 2}, "gone.east.example": {1, 1}})
			if err := os.Remove(filepath.Join(east.folder, "gone.yaml")); err != nil {
				t.Fatal(err)
			}
			both(map[string][2]int{"web.west.example": {1, 1}, "gone.west.example": {1, 1}, "web.east.example": {2, 2}})

			west.Kill()
			west.Write("web", "{address: 10.0.0.2}", "{address: 10.0.0.3}", "{address: 10.0.0.4}")
			west.serve()
			both(map[string][2]int{"web.west.example": {3, 3}, "gone.west.example": {1, 1}, "web.east.example": {2, 2}})
			west.Write("web", "{address: 10.0.0.4}")
			both(map[string][2]int{"web.west.example": {1, 1}, "gone.west.example": {1, 1}, "web.east.example": {2, 2}})
		})
	}
}
