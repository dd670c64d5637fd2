package azure_test

import (
	"os"
	"testing"
	"testing/synctest"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/azure"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/store"
)

// Hosts with their resources, and one port for all, are enough of a configuration.
func TestServicesInTheShortForm(t *testing.T) {
	t.Parallel()
	c, problems := config.Parse([]byte(`
sources:
- name: vms
  azure: {subscription: "", services: {reviews.example.com: [`+vms+`one, `+sets+`web]}, port: 8080, credentials: {workloadIdentity: {}}}
outputs: {xds: {listen: "127.0.0.1:0"}}
`), os.LookupEnv)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	settings, _ := c.Sources[0].Settings.(*azure.Config)
	a := newAzure()
	a.machines["one"], a.sets["web"] = machine{address: "10.0.0.1"}, set{members: members("10.0.0.2")}
	synctest.Test(t, func(t *testing.T) {
		m := follow(t, store.NewMemory(store.Config{}), azure.New(*settings, source.Env{Name: "azure"}, azure.Access{Credential: &azfake.TokenCredential{}, Transport: a}), hold.Config{})
		defer m.stop()
		m.mustHave("reviews.example.com", "10.0.0.1", "10.0.0.2")
		for rec := range m.store.List(model.Filter{Source: "azure", Kind: model.KindService}) {
			want := model.Service{
				Hosts: model.ListOf("reviews.example.com"), Location: model.MeshInternal, Resolution: model.ResolutionStatic,
				Ports: model.ListOf(model.Port{Number: 8080, Name: "port-8080"}),
			}
			if !rec.Spec.EqualSpec(want) {
				t.Errorf("want %+v\n got %+v", want, rec.Spec)
			}
		}
	})
}
