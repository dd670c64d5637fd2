package azure_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/azure"
	"github.com/isthmus-mesh/isthmus/source/machines"
	"github.com/isthmus-mesh/isthmus/store"
)

// anything lets every namespace name every machine.
var anything = []azure.Allow{{Namespaces: []string{"*"}, Subscriptions: []string{"*"}}}

// objectOf is what an AzureResource object of a namespace defines.
func objectOf(namespace, name string, s machines.Service) machines.Definition {
	s.Namespace = namespace
	return machines.Definition{Service: s, Name: name, Place: "azureresources", Where: "AzureResource " + namespace + "/" + name}
}

// Objects may name the machines that the configuration allows their namespace, and no others.
func TestObjectsNameOnlyMachinesOfTheirNamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, _ := two()
		a.machines["old"] = machine{name: "old", address: "10.2.0.1", tags: map[string]string{"app": "old"}}
		tagged := machines.Service{Host: "tagged.example", Ports: http8080, Tags: map[string]string{"app": "old"}}
		settings := []azure.Allow{
			{Namespaces: []string{"shop"}, Subscriptions: []string{subscription}, Groups: []string{"shop"}}, // in Azure, it is called Shop
			{Namespaces: []string{"bank"}, Subscriptions: []string{subscription}, Groups: []string{"bank"}},
			{Namespaces: []string{"ops"}, Subscriptions: []string{subscription}},
		}
		elsewhere := "/subscriptions/" + other + "/resourceGroups/shop/providers/Microsoft.Compute/virtualMachineScaleSets/web"
		objects := machines.Objects{Place: "azureresources", Definitions: []machines.Definition{
			objectOf("shop", "web", on("web.example", sets+"web")),
			objectOf("bank", "web", on("web.example", sets+"web")),
			objectOf("shop", "elsewhere", on("elsewhere.example", sets+"web", elsewhere)),
			objectOf("shop", "tagged", tagged),
			objectOf("ops", "ops-tagged", tagged),
			objectOf("guest", "guest", on("guest.example", sets+"web")),
		}}
		var now atomic.Pointer[machines.Objects]
		now.Store(&objects)
		m := mirrorAllowing(t, store.NewMemory(store.Config{}), a, settings, func(context.Context) machines.Objects { return *now.Load() })
		defer func() { m.stop() }()
		m.mustHave("web", "10.0.0.1", "10.0.0.2") // one endpoint each: of shop alone
		m.mustHave("ops-tagged", "10.2.0.1")
		for _, none := range []string{"elsewhere", "tagged", "guest"} {
			m.mustHave(none)
		}
		m.mustReject("AzureResource bank/web", "spec.resources[0]", "the namespace bank", "the resource group shop", "allow of the source")
		m.mustReject("AzureResource shop/elsewhere", "spec.resources[1]", other)
		m.mustReject("AzureResource shop/tagged", "spec.tags", "the whole subscription")
		m.mustReject("AzureResource guest/guest", "the namespace guest")
		m.mustBe(source.StateLive)

		// An object that names a machine of others from now on loses what it had.
		changed := objects
		changed.Definitions = []machines.Definition{objects.Definitions[0], objectOf("ops", "ops-tagged", on("tagged.example", elsewhere))}
		now.Store(&changed)
		m.rounds(2)
		m.mustReject("AzureResource ops/ops-tagged", other)
		m.mustHave("web", "10.0.0.1", "10.0.0.2")
		m.mustHave("ops-tagged")
	})
}

// A namespace that names very many machines is read over several rounds. Others, and the
// configuration, are read in each.
func TestOneNamespaceCannotUseUpASubscription(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many, perRound = 450, 200
		a, services := two()
		var all []string
		for i := range many {
			name := fmt.Sprintf("m-%03d", i)
			a.machines[name] = machine{name: name, address: fmt.Sprintf("10.9.%d.%d", i/200, 1+i%200)}
			all = append(all, vms+name)
		}
		objects := machines.Objects{Place: "azureresources", Definitions: []machines.Definition{
			objectOf("greedy", "greedy", on("greedy.example", all...)),
			objectOf("bank", "bank", on("bank.example", sets+"web")),
		}}
		m := mirrorAllowing(t, store.NewMemory(store.Config{}), a, anything, func(context.Context) machines.Objects { return objects }, services[1])
		defer func() { m.stop() }()
		for round := range 6 {
			m.mustHave("bank", "10.0.0.1", "10.0.0.2")
			m.mustHave("shop.example", "10.1.0.1")
			// Each round reads the two sets, and no more machines than there may be.
			if n := a.asked("VirtualMachinesClient.Get"); n > perRound || round > 0 && n < perRound-2 {
				t.Errorf("round %d reads %d machines", round, n)
			}
			a.change(func() { a.requests = nil })
			m.rounds(1)
		}
		if n := len(m.endpoints("greedy")); n != many {
			t.Errorf("%d machines of %d are known after six rounds", n, many)
		}
		m.mustBe(source.StateLive)
	})
}
