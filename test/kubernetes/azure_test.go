package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/azure"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

const azureResource = `
apiVersion: isthmus.io/v1alpha1
kind: AzureResource
metadata: {namespace: machines, name: billing}
spec:
  host: billing.machines.svc.cluster.local
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  labels: {version: v1}
  resources: [/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/%s]
`

var azureResources = schema.GroupVersionResource{Group: "isthmus.io", Version: "v1alpha1", Resource: "azureresources"}

// AzureResource objects define services, in whatever order they, their definition and the
// right to read them come. The API server takes none that is invalid.
func TestAzureResources(t *testing.T) {
	t.Parallel()
	c := own(t)
	client, ctx := connect(t, c), t.Context()
	if err := client.Namespace(ctx, "machines"); err != nil {
		t.Fatal(err)
	}
	m := mirrorAzure(t, kubeconfig(t, c.API, "reader"))
	m.awaitState(source.StateLive)
	m.awaitRejected("azureresources", "; allow list") // who may not read has no right to know that it is absent
	for kind, text := range map[schema.GroupVersionResource]string{
		clusterRoles: fmt.Sprintf(clusterRole, "- {apiGroups: [isthmus.io], resources: [azureresources], verbs: [list]}\n"), bindings: roleBinding,
	} {
		if err := client.Apply(ctx, kind, object(t, "%s", text)); err != nil {
			t.Fatal(err)
		}
	}
	m.awaitRejected("azureresources", "install its custom resource definition")

	definition, err := os.ReadFile("../../deploy/helm/isthmus/crds/azureresources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Apply(ctx, definitions, object(t, "%s", definition)); err != nil {
		t.Fatal(err)
	}
	await(t, "the kind is served", func() error { return client.Apply(ctx, azureResources, object(t, azureResource, "one")) })
	m.awaitRejected("azureresources", "")
	m.awaitAddress("10.0.0.1")

	for _, invalid := range []string{
		strings.Replace(azureResource, "billing.machines", "Billing.machines", 1), strings.Replace(azureResource, "HTTP", "SCTP", 1),
		strings.Replace(azureResource, "[/subscriptions", "[/resource/subscriptions", 1), strings.Replace(azureResource, "resources:", "others:", 1),
		strings.Replace(azureResource, "80,", "0,", 1),
	} {
		if err := client.Apply(ctx, azureResources, object(t, invalid, "one")); err == nil {
			t.Errorf("the API server takes %s", invalid)
		}
	}
	if err := client.Apply(ctx, azureResources, object(t, azureResource, "two")); err != nil {
		t.Fatal(err)
	}
	m.awaitAddress("10.0.0.2")

	before := m.records("machines")
	c.API.Kill()
	await(t, "the source says that the API server is away", func() error {
		if s := m.supervisor.Status(); s.State != source.StateLive || len(s.Rejected) == 0 || !strings.Contains(s.Rejected[0].Reason, "cannot be read") {
			return fmt.Errorf("it is %s: %s; rejected are %v", s.State, s.Reason, s.Rejected)
		}
		return nil
	})
	if now := m.records("machines"); len(now) != len(before) {
		t.Errorf("there was %v, and is %v", before, now)
	}
	if err := c.API.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	m.awaitRejected("azureresources", "")
	if err := client.Delete(ctx, azureResources, "machines", "billing"); err != nil {
		t.Fatal(err)
	}
	await(t, "the service is held as the last one", func() error {
		if s := m.supervisor.Status(); s.State != source.StateHeld {
			return fmt.Errorf("it is %s: %s", s.State, s.Reason)
		}
		return nil
	})
}

// mirrorAzure runs a source of a cluster's objects until the test ends.
func mirrorAzure(t *testing.T, kubeconfig string) *mirrored {
	t.Helper()
	settings, _ := azure.Kind().New().(*azure.Config)
	settings.Kubernetes, settings.Poll = &azure.Kubernetes{Kubeconfig: kubeconfig}, 100*time.Millisecond
	settings.Allow = []azure.Allow{{Namespaces: []string{"*"}, Subscriptions: []string{"*"}}}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	m := &mirrored{t: t, store: store.NewMemory(store.Config{})}
	src := azure.New(*settings, source.Env{Log: log}, azure.Access{Credential: &azfake.TokenCredential{}, Transport: machinesOf{
		"one": "10.0.0.1", "two": "10.0.0.2",
	}})
	m.supervisor = supervise.New("k8s", src, m.store, supervise.Config{Kind: "azure", MaxBackoff: 500 * time.Millisecond, Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = m.supervisor.Run(ctx) })
	m.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(m.stop)
	return m
}

func (m *mirrored) awaitAddress(address string) {
	m.t.Helper()
	await(m.t, address, func() error {
		records := m.records("machines")
		for name, text := range records {
			if strings.HasPrefix(name, "Endpoint billing") && strings.Contains(text, `"address":"`+address+`"`) && len(records) == 2 {
				return nil
			}
		}
		return errors.New(fmt.Sprint(records))
	})
}

// machinesOf answers for machines with these addresses, as Azure does.
type machinesOf map[string]string

// Do implements the transport of the SDK.
func (m machinesOf) Do(r *http.Request) (*http.Response, error) {
	const group = "/subscriptions/s/resourceGroups/g/providers/Microsoft."
	var body string
	if strings.HasSuffix(r.URL.Path, "/networkInterfaces") {
		var list []string
		for name, address := range m {
			list = append(list, fmt.Sprintf(`{"id": %q, "properties": {"ipConfigurations": [{"properties": {"privateIPAddress": %q}}]}}`,
				group+"Network/networkInterfaces/"+name, address))
		}
		body = `{"value": [` + strings.Join(list, ",") + `]}`
	} else {
		name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		body = fmt.Sprintf(`{"id": %q, "properties": {"provisioningState": "Succeeded", "instanceView": {"statuses": [{"code": "PowerState/running"}]},
			"networkProfile": {"networkInterfaces": [{"id": %q}]}}}`, group+"Compute/virtualMachines/"+name, group+"Network/networkInterfaces/"+name)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}
