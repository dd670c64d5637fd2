package azure_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	computefake "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	networkfake "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9/fake"
)

// servers are the fakes of the SDK.
type servers struct {
	machines   *computefake.VirtualMachinesServerTransport
	sets       *computefake.VirtualMachineScaleSetsServerTransport
	instances  *computefake.VirtualMachineScaleSetVMsServerTransport
	interfaces *networkfake.InterfacesServerTransport
}

func (s *servers) do(api string, r *http.Request) (*http.Response, error) {
	switch client, _, _ := strings.Cut(api, "."); client {
	case "VirtualMachinesClient":
		return s.machines.Do(r)
	case "VirtualMachineScaleSetsClient":
		return s.sets.Do(r)
	case "VirtualMachineScaleSetVMsClient":
		return s.instances.Do(r)
	case "InterfacesClient":
		return s.interfaces.Do(r)
	}
	return nil, fmt.Errorf("nothing like %s %q is to be asked for", r.URL, api)
}

// serve returns fakes that show what there is now. The caller has the lock.
func (a *azureOf) serve() *servers {
	scaleSets, ordinary := maps.Clone(a.sets), maps.Clone(a.machines)
	for name, s := range scaleSets {
		for _, m := range s.members {
			if s.flexible {
				ordinary[name+"_"+m.name] = m
			}
		}
	}
	for name, m := range ordinary {
		m.name = name // of which the name of its interface is made
		ordinary[name] = m
	}
	view := shown{scaleSets, ordinary}
	return &servers{
		computefake.NewVirtualMachinesServerTransport(&computefake.VirtualMachinesServer{
			Get: view.machine, NewListPager: view.listMachines, NewListAllPager: view.listAllMachines,
		}),
		computefake.NewVirtualMachineScaleSetsServerTransport(&computefake.VirtualMachineScaleSetsServer{
			Get: view.set, NewListAllPager: view.listAllSets,
		}),
		computefake.NewVirtualMachineScaleSetVMsServerTransport(&computefake.VirtualMachineScaleSetVMsServer{NewListPager: view.listInstances}),
		networkfake.NewInterfacesServerTransport(&networkfake.InterfacesServer{
			NewListPager: view.listInterfaces, NewListVirtualMachineScaleSetNetworkInterfacesPager: view.listSetInterfaces,
		}),
	}
}

// shown is what fakes show.
type shown struct {
	sets     map[string]set
	machines map[string]machine
}

// pageSize is small, so that most lists have several pages; and each has a second one.
const pageSize = 5

func pages[P, T any](list []*T, page func([]*T) P) (r azfake.PagerResponder[P]) {
	for n := 0; n < 2 || n*pageSize < len(list); n++ {
		from, until := min(n*pageSize, len(list)), min((n+1)*pageSize, len(list))
		r.AddPage(http.StatusOK, page(append([]*T{}, list[from:until]...)), nil)
	}
	return r
}

// ordinary is a machine, as it is shown in lists with its state and without.
func (s shown) ordinary(name string, withView bool) *armcompute.VirtualMachine {
	m := s.machines[name]
	vm := &armcompute.VirtualMachine{
		ID: new(vms + name), Name: new(name), Location: new("West Europe"), Tags: tagsOf(m.tags), Zones: m.zones(),
		Properties: &armcompute.VirtualMachineProperties{
			ProvisioningState: new(or(m.provisioning, "Succeeded")), NetworkProfile: m.profile(vms+name, nics),
		},
	}
	if inSet, _, is := strings.Cut(name, "_"); is {
		vm.Properties.VirtualMachineScaleSet = &armcompute.SubResource{ID: new(sets + inSet)}
	}
	if withView {
		vm.Properties.InstanceView = &armcompute.VirtualMachineInstanceView{Statuses: m.statuses(), VMHealth: m.vmHealth()}
	}
	return vm
}

func (s shown) machine(_ context.Context, _, name string, o *armcompute.VirtualMachinesClientGetOptions) (resp azfake.Responder[armcompute.VirtualMachinesClientGetResponse], errResp azfake.ErrorResponder) {
	if _, is := s.machines[name]; !is {
		errResp.SetResponseError(http.StatusNotFound, "ResourceNotFound")
		return resp, errResp
	}
	resp.SetResponse(http.StatusOK, armcompute.VirtualMachinesClientGetResponse{VirtualMachine: *s.ordinary(name, o != nil && o.Expand != nil)}, nil)
	return resp, errResp
}

func (s shown) listMachines(_ string, o *armcompute.VirtualMachinesClientListOptions) azfake.PagerResponder[armcompute.VirtualMachinesClientListResponse] {
	var list []*armcompute.VirtualMachine
	for _, name := range slices.Sorted(maps.Keys(s.machines)) {
		vm := s.ordinary(name, o != nil && o.Filter != nil && o.Expand != nil)
		if of := vm.Properties.VirtualMachineScaleSet; o == nil || o.Filter == nil ||
			of != nil && strings.EqualFold(*o.Filter, "'virtualMachineScaleSet/id' eq '"+*of.ID+"'") {
			list = append(list, vm)
		}
	}
	return pages(list, func(page []*armcompute.VirtualMachine) (r armcompute.VirtualMachinesClientListResponse) {
		r.Value = page
		return r
	})
}

func (s shown) listAllMachines(o *armcompute.VirtualMachinesClientListAllOptions) azfake.PagerResponder[armcompute.VirtualMachinesClientListAllResponse] {
	statusOnly := o != nil && o.StatusOnly != nil
	var list []*armcompute.VirtualMachine
	for _, name := range slices.Sorted(maps.Keys(s.machines)) {
		vm := s.ordinary(name, statusOnly)
		if statusOnly {
			vm.Tags, vm.Properties.NetworkProfile = nil, nil
		}
		list = append(list, vm)
	}
	return pages(list, func(page []*armcompute.VirtualMachine) (r armcompute.VirtualMachinesClientListAllResponse) {
		r.Value = page
		return r
	})
}

func (s shown) scaleSet(name string) armcompute.VirtualMachineScaleSet {
	mode := armcompute.OrchestrationModeUniform
	if s.sets[name].flexible {
		mode = armcompute.OrchestrationModeFlexible
	}
	return armcompute.VirtualMachineScaleSet{
		ID: new(sets + name), Tags: tagsOf(s.sets[name].tags), Properties: &armcompute.VirtualMachineScaleSetProperties{OrchestrationMode: &mode},
	}
}

func (s shown) set(_ context.Context, _, name string, _ *armcompute.VirtualMachineScaleSetsClientGetOptions) (resp azfake.Responder[armcompute.VirtualMachineScaleSetsClientGetResponse], errResp azfake.ErrorResponder) {
	if _, is := s.sets[name]; !is {
		errResp.SetResponseError(http.StatusNotFound, "ResourceNotFound")
		return resp, errResp
	}
	resp.SetResponse(http.StatusOK, armcompute.VirtualMachineScaleSetsClientGetResponse{VirtualMachineScaleSet: s.scaleSet(name)}, nil)
	return resp, errResp
}

func (s shown) listAllSets(*armcompute.VirtualMachineScaleSetsClientListAllOptions) azfake.PagerResponder[armcompute.VirtualMachineScaleSetsClientListAllResponse] {
	var list []*armcompute.VirtualMachineScaleSet
	for _, name := range slices.Sorted(maps.Keys(s.sets)) {
		one := s.scaleSet(name)
		list = append(list, &one)
	}
	return pages(list, func(page []*armcompute.VirtualMachineScaleSet) (r armcompute.VirtualMachineScaleSetsClientListAllResponse) {
		r.Value = page
		return r
	})
}

func instanceURI(set, name string) string { return sets + set + "/virtualMachines/" + name }

func (s shown) listInstances(_, name string, o *armcompute.VirtualMachineScaleSetVMsClientListOptions) azfake.PagerResponder[armcompute.VirtualMachineScaleSetVMsClientListResponse] {
	var list []*armcompute.VirtualMachineScaleSetVM
	for _, m := range s.sets[name].members {
		uri := instanceURI(name, m.name)
		vm := &armcompute.VirtualMachineScaleSetVM{
			ID: new(uri), Location: new("westeurope"), Tags: tagsOf(m.tags), Zones: m.zones(),
			Properties: &armcompute.VirtualMachineScaleSetVMProperties{
				ProvisioningState: new(or(m.provisioning, "Succeeded")), NetworkProfile: m.profile(uri, uri+"/networkInterfaces/"),
			},
		}
		if o != nil && o.Expand != nil {
			vm.Properties.InstanceView = &armcompute.VirtualMachineScaleSetVMInstanceView{Statuses: m.statuses(), VMHealth: m.vmHealth()}
		}
		list = append(list, vm)
	}
	return pages(list, func(page []*armcompute.VirtualMachineScaleSetVM) (r armcompute.VirtualMachineScaleSetVMsClientListResponse) {
		r.Value = page
		return r
	})
}

func (s shown) listSetInterfaces(_, name string, _ *armnetwork.InterfacesClientListVirtualMachineScaleSetNetworkInterfacesOptions) azfake.PagerResponder[armnetwork.InterfacesClientListVirtualMachineScaleSetNetworkInterfacesResponse] {
	var list []*armnetwork.Interface
	for _, m := range s.sets[name].members {
		if uri := instanceURI(name, m.name); !m.hiddenInterface {
			list = append(list, m.interfacesAt(uri, uri+"/networkInterfaces/")...)
		}
	}
	return pages(list, func(page []*armnetwork.Interface) (r armnetwork.InterfacesClientListVirtualMachineScaleSetNetworkInterfacesResponse) {
		r.Value = page
		return r
	})
}

func (s shown) listInterfaces(string, *armnetwork.InterfacesClientListOptions) azfake.PagerResponder[armnetwork.InterfacesClientListResponse] {
	var list []*armnetwork.Interface
	for _, name := range slices.Sorted(maps.Keys(s.machines)) {
		if m := s.machines[name]; !m.hiddenInterface {
			list = append(list, m.interfacesAt(vms+name, nics)...)
		}
	}
	return pages(list, func(page []*armnetwork.Interface) (r armnetwork.InterfacesClientListResponse) {
		r.Value = page
		return r
	})
}
