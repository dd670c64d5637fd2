package istio

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
)

// The marker is the Lease of the election: looked for, or created once and without a
// holder. It is known by its UID.
func TestMarkerIsTheLease(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	c := DefaultConfig()
	c.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	c.LeaderElection = LeaderElection{Namespace: "mesh", Name: "bridge"}
	kubeconfig := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: t, cluster: {server: %q}}]\n"+
		"contexts: [{name: t, context: {cluster: t}}]\ncurrent-context: t\n", api.URL())
	if err := os.WriteFile(c.Kubeconfig, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	mark := func(create bool) source.Marker {
		t.Helper()
		m, err := c.Mark(t.Context(), create)
		if err != nil || m.Namespace != "mesh" || m.Name != "bridge" {
			t.Fatalf("the marker is %+v, %v", m, err)
		}
		return m
	}
	sees := func(m source.Marker, want bool) {
		t.Helper()
		if got, err := c.Sees(t.Context(), m); err != nil || got != want {
			t.Errorf("%+v is seen: %t, %v", m, got, err)
		}
	}
	if m := mark(false); m.UID != "" || len(api.Writes()) > 0 {
		t.Errorf("a look finds %+v, and writes %q", m, api.Writes())
	}
	created := mark(true)
	const lease = "coordination.k8s.io/v1/namespaces/mesh/leases/bridge"
	if again := mark(true); created.UID == "" || again != created || mark(false) != created {
		t.Errorf("it is %+v, then %+v", created, again)
	}
	if got := api.Writes(); !slices.Equal(got, []string{"POST " + lease}) || strings.Contains(fmt.Sprint(api.Get(lease)), "holder") {
		t.Errorf("%q make %v", got, api.Get(lease))
	}
	sees(created, true)
	api.Delete(lease)
	sees(created, false)
	api.Put(lease, kubeapi.Object{"kind": "Lease", "metadata": kubeapi.Object{"namespace": "mesh", "name": "bridge"}})
	sees(created, false)
	api.Reject(func(string, string) *kubeapi.Rejection {
		return &kubeapi.Rejection{Code: 403, Reason: "Forbidden", Message: "no"}
	})
	if _, err := c.Sees(t.Context(), created); err == nil || !strings.Contains(err.Error(), "resourceNames [bridge], in the namespace mesh") {
		t.Errorf("the error is %v", err)
	}
}
