package app

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/demo/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// What a registry says of consumers, and an object that Isthmus does not
// understand, come all the way to where outputs read.
func TestConsumptionsAndCarriedObjectsReachTheCatalog(t *testing.T) {
	t.Parallel()
	center := servicecenter.Start(t, servicecenter.Config{Prompt: true, KeepAlive: true})
	web, cart := center.Register(servicecenter.Service{App: "shop", Name: "web"}), center.Register(servicecenter.Service{App: "shop", Name: "cart"})
	for i, id := range []string{web, cart} {
		center.RegisterInstance(id, servicecenter.Instance{HostName: "h", Endpoints: []string{fmt.Sprintf("rest://10.0.0.%d:80", i+1)}})
	}
	lookUp(t, center.URL(), web, "cart")

	dir := t.TempDir()
	write(t, filepath.Join(dir, "files", "group.yaml"), "apiVersion: networking.istio.io/v1\nkind: WorkloadGroup\n"+
		"metadata: {name: machines, namespace: shop, labels: {team: one}}\nspec: {template: {serviceAccount: shop}}\n")
	write(t, filepath.Join(dir, "isthmus.yaml"), "sources:\n- {name: files, file: {path: files}}\n- name: center\n  servicecenter: {addresses: ["+
		center.URL()+"], dependencies: {poll: 1s}, poll: 1s, host: \"{{.Service}}.sc\"}\n"+
		"outputs: {xds: {listen: '127.0.0.1:0'}}\nadmin: {listen: '127.0.0.1:0'}\n")
	c, err := config.Load(filepath.Join(dir, "isthmus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(t.Context(), c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	run(t, a)
	until.NoError(t, 20*time.Second, 5*time.Millisecond, "both records in the catalog", func() error {
		now := a.branches[0].gate.Snapshot()
		uses, _ := now.Consumption(catalog.ServiceKey{Namespace: "istio-system", Host: "web.sc"})
		group, _ := now.Opaque(catalog.OpaqueKey{Kind: "WorkloadGroup", Namespace: "shop", Name: "machines"})
		if uses == nil || len(uses.Providers) != 1 || uses.Providers[0].Host != "cart.sc" || group == nil || group.Records[0].Place != "group.yaml" {
			return fmt.Errorf("consumption %+v, carried %+v", uses, group)
		}
		return nil
	})
}

// lookUp has a consumer find a provider, which the registry notes.
func lookUp(t *testing.T, registry, consumer, provider string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		registry+"/v4/default/registry/instances?appId=shop&serviceName="+provider+"&version=0%2B", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-ConsumerId", consumer)
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
