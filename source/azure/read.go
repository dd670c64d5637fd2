package azure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/isthmus-mesh/isthmus/source/machines"
)

// round reads groups once. A list that several groups need is read once.
type round struct {
	cloud *cloud

	interfaces shared[interfaces]                            // by subscription, and group if not all of it
	machines   shared[[]*armcompute.VirtualMachine]          // by subscription
	statuses   shared[map[string]*armcompute.VirtualMachine] // by subscription, then URI
	sets       shared[[]*armcompute.VirtualMachineScaleSet]  // by subscription
}

// shared reads a value once for each key, for all callers.
type shared[T any] struct {
	mu  sync.Mutex
	all map[string]*result[T]
}

type result[T any] struct {
	done  chan struct{} // closed once the rest is known
	value T
	err   error
}

// errUnread is the result for goroutines that wait for a reading that panics.
var errUnread = errors.New("it could not be read")

func (s *shared[T]) get(key string, read func() (T, error)) (T, error) {
	s.mu.Lock()
	r, begun := s.all[key]
	if !begun {
		if s.all == nil {
			s.all = map[string]*result[T]{}
		}
		r = &result[T]{done: make(chan struct{}), err: errUnread}
		s.all[key] = r
	}
	s.mu.Unlock()
	if begun {
		<-r.done // the reading goroutine ends with the round
		return r.value, r.err
	}
	defer close(r.done)
	r.value, r.err = read()
	return r.value, r.err
}

// Read implements [machines.Reader].
func (r *round) Read(ctx context.Context, g machines.Group) ([]machines.Machine, error) {
	if g.Resource == "" {
		return r.tagged(ctx, g.Scope, g.Tags.All())
	}
	is, err := parse(g.Resource)
	if err != nil {
		return nil, err
	}
	c, err := r.cloud.of(is.subscription)
	if err != nil {
		return nil, err
	}
	if is.kind == virtualMachines {
		return r.single(ctx, c, is)
	}
	return r.set(ctx, c, is)
}

// single reads one machine by its name.
func (r *round) single(ctx context.Context, c *clients, is resource) ([]machines.Machine, error) {
	expand := armcompute.InstanceViewTypesInstanceView
	answer, err := c.machines.Get(ctx, is.group, is.name, &armcompute.VirtualMachinesClientGetOptions{Expand: &expand})
	if err != nil {
		return nil, denied(err)
	}
	if !same(text(answer.ID), is.String()) {
		return nil, fmt.Errorf("Azure answers with %q instead", text(answer.ID)) //nolint:staticcheck // a name
	}
	return r.ordinary(ctx, []*armcompute.VirtualMachine{&answer.VirtualMachine}, nil)
}

// set reads a scale set. The set itself is requested first. The lists of members of a
// missing set may be empty. A new set of the same name may have another mode.
func (r *round) set(ctx context.Context, c *clients, is resource) ([]machines.Machine, error) {
	answer, err := c.sets.Get(ctx, is.group, is.name, nil)
	if err != nil {
		return nil, denied(err)
	}
	if !same(text(answer.ID), is.String()) {
		return nil, fmt.Errorf("Azure answers with %q instead", text(answer.ID)) //nolint:staticcheck // a name
	}
	if isFlexible(&answer.VirtualMachineScaleSet) {
		return r.flexible(ctx, c, is)
	}
	return r.uniform(ctx, c, is)
}

// isFlexible reports the mode of a set. Sets older than modes have none.
func isFlexible(s *armcompute.VirtualMachineScaleSet) bool {
	return s.Properties != nil && s.Properties.OrchestrationMode != nil && *s.Properties.OrchestrationMode == armcompute.OrchestrationModeFlexible
}

// uniform reads a set with instances that are not machines of their own.
func (r *round) uniform(ctx context.Context, c *clients, is resource) ([]machines.Machine, error) {
	expand := "instanceView"
	list, err := all(ctx, c.instances.NewListPager(is.group, is.name, &armcompute.VirtualMachineScaleSetVMsClientListOptions{Expand: &expand}),
		func(p armcompute.VirtualMachineScaleSetVMsClientListResponse) []*armcompute.VirtualMachineScaleSetVM {
			return p.Value
		})
	if err != nil {
		return nil, fmt.Errorf("instances: %w", err)
	}
	nics, err := all(ctx, c.interfaces.NewListVirtualMachineScaleSetNetworkInterfacesPager(is.group, is.name, nil),
		func(p armnetwork.InterfacesClientListVirtualMachineScaleSetNetworkInterfacesResponse) []*armnetwork.Interface {
			return p.Value
		})
	if err != nil {
		return nil, fmt.Errorf("network interfaces: %w", err)
	}
	index := indexed(nics)
	found := make([]machines.Machine, 0, len(list))
	for _, vm := range list {
		m, err := instance(vm, is)
		if err != nil {
			return nil, err
		}
		index.join(&m, text(vm.ID), referencesOf(vm.Properties.NetworkProfile))
		found = append(found, m)
	}
	return found, nil
}

// instance returns an instance of a uniform set, without its address.
func instance(vm *armcompute.VirtualMachineScaleSetVM, of resource) (machines.Machine, error) {
	id, ok := machineID(text(vm.ID))
	if !ok || vm.Properties == nil || !strings.HasPrefix(strings.ToLower(text(vm.ID)), of.String()+"/") {
		return machines.Machine{}, fmt.Errorf("instances: Azure answers with %q, which is none of the set", text(vm.ID))
	}
	v := view{provisioning: vm.Properties.ProvisioningState}
	if i := vm.Properties.InstanceView; i != nil {
		v.statuses, v.health = i.Statuses, i.VMHealth
	}
	return machines.Machine{ID: id, State: v.state(), Tags: tagsOf(vm.Tags), Locality: locality(vm.Location, vm.Zones)}, nil
}

// flexible reads a set that consists of ordinary machines.
func (r *round) flexible(ctx context.Context, c *clients, is resource) ([]machines.Machine, error) {
	filter, expand := "'virtualMachineScaleSet/id' eq '"+is.String()+"'", armcompute.ExpandTypeForListVMsInstanceView
	list, err := all(ctx, c.machines.NewListPager(is.group, &armcompute.VirtualMachinesClientListOptions{Filter: &filter, Expand: &expand}),
		func(p armcompute.VirtualMachinesClientListResponse) []*armcompute.VirtualMachine { return p.Value })
	if err != nil {
		return nil, fmt.Errorf("machines: %w", err)
	}
	for _, vm := range list {
		if p := vm.Properties; p == nil || p.VirtualMachineScaleSet == nil || !same(text(p.VirtualMachineScaleSet.ID), is.String()) {
			return nil, fmt.Errorf("machines: Azure answers with %q, which is none of the set", text(vm.ID))
		}
	}
	return r.ordinary(ctx, list, nil)
}

// tagged reads the machines of a subscription that have some tags. Ordinary machines
// are matched by their own tags, instances of uniform sets by the tags of the set.
func (r *round) tagged(ctx context.Context, subscription string, tags map[string]string) (found []machines.Machine, err error) {
	list, statuses, err := r.allMachines(ctx, subscription)
	if err != nil {
		return nil, fmt.Errorf("machines: %w", err)
	}
	var chosen []*armcompute.VirtualMachine
	for _, vm := range list {
		if hasAll(vm.Tags, tags) {
			chosen = append(chosen, vm)
		}
	}
	if found, err = r.ordinary(ctx, chosen, statuses); err != nil {
		return nil, err
	}
	sets, err := r.allSets(ctx, subscription)
	if err != nil {
		return nil, fmt.Errorf("scale sets: %w", err)
	}
	for _, s := range sets {
		_, is, err := split(text(s.ID))
		if err != nil {
			return nil, fmt.Errorf("scale sets: Azure answers with %q, which is none", text(s.ID))
		}
		if isFlexible(s) || !hasAll(s.Tags, tags) {
			continue
		}
		c, err := r.cloud.of(subscription)
		if err != nil {
			return nil, err
		}
		more, err := r.uniform(ctx, c, is)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// ordinary makes machines of listed virtual machines, with the addresses of their
// interfaces. Statuses has the states of machines that were listed without them.
func (r *round) ordinary(ctx context.Context, list []*armcompute.VirtualMachine, statuses map[string]*armcompute.VirtualMachine) ([]machines.Machine, error) {
	found := make([]machines.Machine, 0, len(list))
	for _, vm := range list {
		id, ok := machineID(text(vm.ID))
		if !ok || vm.Properties == nil {
			return nil, fmt.Errorf("machines: Azure answers with %q, which is none", text(vm.ID))
		}
		m := machines.Machine{ID: id, State: viewOf(vm, statuses).state(), Tags: tagsOf(vm.Tags), Locality: locality(vm.Location, vm.Zones)}
		refs := referencesOf(vm.Properties.NetworkProfile)
		index, err := r.interfacesOf(ctx, refs)
		if err != nil {
			return nil, fmt.Errorf("network interfaces: %w", err)
		}
		index.join(&m, text(vm.ID), refs)
		found = append(found, m)
	}
	return found, nil
}

func viewOf(vm *armcompute.VirtualMachine, statuses map[string]*armcompute.VirtualMachine) view {
	v := view{provisioning: vm.Properties.ProvisioningState}
	is := vm.Properties.InstanceView
	if status := statuses[strings.ToLower(text(vm.ID))]; status != nil && status.Properties != nil {
		is = status.Properties.InstanceView
	}
	if is != nil {
		v.statuses, v.health = is.Statuses, is.VMHealth
	}
	return v
}

// mostPages bounds the pages of a list. A longer list is a cycle of pages.
const mostPages = 10_000

// all reads every page of a list. A page that fails or has no list fails the whole
// list.
func all[P, T any](ctx context.Context, pages *runtime.Pager[P], items func(P) []*T) (list []*T, err error) {
	for n := 0; pages.More(); n++ {
		if n == mostPages {
			return nil, fmt.Errorf("Azure answers with a list of more than %d pages", mostPages) //nolint:staticcheck // a name
		}
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, explain(err)
		}
		found := items(page)
		if found == nil {
			return nil, errors.New("Azure answers with a page that has no list") //nolint:staticcheck // a name
		}
		for _, item := range found {
			if item == nil {
				return nil, errors.New("Azure answers with a list that has an empty item") //nolint:staticcheck // a name
			}
		}
		list = append(list, found...)
	}
	return list, nil
}
