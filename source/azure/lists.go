package azure

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
)

// interfacesOf returns the interfaces of the resource group that has the machine's
// primary interface. The group may differ from the machine's own.
func (r *round) interfacesOf(ctx context.Context, refs references) (interfaces, error) {
	_, is, err := split(refs.primary())
	if err != nil {
		return interfaces{}, nil // the machine has no interface
	}
	return r.interfaces.get(is.subscription+"/"+is.group, func() (interfaces, error) {
		c, err := r.cloud.of(is.subscription)
		if err != nil {
			return interfaces{}, err
		}
		list, err := all(ctx, c.interfaces.NewListPager(is.group, nil),
			func(p armnetwork.InterfacesClientListResponse) []*armnetwork.Interface { return p.Value })
		return indexed(list), err
	})
}

// allMachines returns the ordinary machines of a subscription, and their states,
// which are another list.
func (r *round) allMachines(ctx context.Context, subscription string) ([]*armcompute.VirtualMachine, map[string]*armcompute.VirtualMachine, error) {
	list, err := r.machines.get(subscription, func() ([]*armcompute.VirtualMachine, error) {
		return r.listMachines(ctx, subscription, nil)
	})
	if err != nil {
		return nil, nil, err
	}
	statuses, err := r.statuses.get(subscription, func() (map[string]*armcompute.VirtualMachine, error) {
		list, err := r.listMachines(ctx, subscription, new("true"))
		byURI := make(map[string]*armcompute.VirtualMachine, len(list))
		for _, vm := range list {
			byURI[strings.ToLower(text(vm.ID))] = vm
		}
		return byURI, err
	})
	return list, statuses, err
}

func (r *round) listMachines(ctx context.Context, subscription string, statusOnly *string) ([]*armcompute.VirtualMachine, error) {
	c, err := r.cloud.of(subscription)
	if err != nil {
		return nil, err
	}
	return all(ctx, c.machines.NewListAllPager(&armcompute.VirtualMachinesClientListAllOptions{StatusOnly: statusOnly}),
		func(p armcompute.VirtualMachinesClientListAllResponse) []*armcompute.VirtualMachine { return p.Value })
}

func (r *round) allSets(ctx context.Context, subscription string) ([]*armcompute.VirtualMachineScaleSet, error) {
	return r.sets.get(subscription, func() ([]*armcompute.VirtualMachineScaleSet, error) {
		c, err := r.cloud.of(subscription)
		if err != nil {
			return nil, err
		}
		return all(ctx, c.sets.NewListAllPager(nil),
			func(p armcompute.VirtualMachineScaleSetsClientListAllResponse) []*armcompute.VirtualMachineScaleSet {
				return p.Value
			})
	})
}
