package istio_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// TestRestartWithOldDiskTakesNothingAway starts an Isthmus from what it saved
// before its last writes, while the registry fails. What it wrote then stays until
// the registry has been listed. Another source is not written at all.
func TestRestartWithOldDiskTakesNothingAway(t *testing.T) {
	t.Parallel()
	api, registry, other := connect(t, shared), startRegistry(t), startRegistry(t)
	registry.AddMany("many", 20)
	other.AddMany("other", 3)
	b := api.Bridge(registry, "saved")
	b.alone, b.only, b.dataDir = true, "legacy", filepath.Join(t.TempDir(), "data")
	b.late = &bridge{registry: other, namespace: b.namespace}
	i := serve(t, api, b)
	api.Settle(b)
	if err := i.Terminate(t.Context()); err != nil { // which saves everything
		t.Fatal(err)
	}
	old := filepath.Join(t.TempDir(), "old")
	if err := os.CopyFS(old, os.DirFS(b.dataDir)); err != nil {
		t.Fatal(err)
	}
	i.Restart()
	registry.Add("young", "10.3.0.1:80")
	registry.Add("many-3", "10.9.9.9:80")
	api.Settle(b)
	i.Kill()
	if err := os.RemoveAll(b.dataDir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(old, b.dataDir); err != nil {
		t.Fatal(err)
	}
	registry.Drop("many-1") // while nobody looks
	registry.Inject(servicecenter.Any, servicecenter.FailWith(servicecenter.BackendDown), 0)
	before := len(api.own(b.namespace))

	i.Restart()
	i.AwaitHeld(b.host("young"))
	i.AwaitHeld(b.host("many-3"))
	registry.AwaitRequests(3)
	if writes := api.own(b.namespace)[before:]; len(writes) > 0 {
		t.Errorf("without its registry it wrote %+v", writes)
	}
	registry.Repair()
	api.Settle(b)
	api.MustHaveDeleted(b.namespace, "many-1")
	if writes := api.own(b.namespace)[before:]; len(writes) != 1+1 {
		t.Errorf("a change and a marker led to %d writes: %+v", len(writes), writes)
	}
}
