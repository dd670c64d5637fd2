package azure

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/isthmus-mesh/isthmus/source/machines"
)

// cloud is Azure, as one identity sees it.
type cloud struct {
	credential    azcore.TokenCredential
	options       *arm.ClientOptions
	subscriptions []string // of machines that are selected by tags

	mu      sync.Mutex
	clients map[string]*clients // by subscription
}

var _ machines.Cloud = (*cloud)(nil)

// clients are the API clients of one subscription.
type clients struct {
	machines   *armcompute.VirtualMachinesClient
	sets       *armcompute.VirtualMachineScaleSetsClient
	instances  *armcompute.VirtualMachineScaleSetVMsClient
	interfaces *armnetwork.InterfacesClient
}

// of returns the clients of a subscription. They are kept because they cache their
// tokens.
func (c *cloud) of(subscription string) (*clients, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.clients[subscription]; known != nil {
		return known, nil
	}
	compute, err := armcompute.NewClientFactory(subscription, c.credential, c.options)
	if err != nil {
		return nil, err
	}
	network, err := armnetwork.NewClientFactory(subscription, c.credential, c.options)
	if err != nil {
		return nil, err
	}
	made := &clients{
		compute.NewVirtualMachinesClient(), compute.NewVirtualMachineScaleSetsClient(),
		compute.NewVirtualMachineScaleSetVMsClient(), network.NewInterfacesClient(),
	}
	c.clients[subscription] = made
	return made, nil
}

// Groups implements [machines.Cloud].
func (c *cloud) Groups(s machines.Service) (groups []machines.Group, err error) {
	var errs []error
	for i, uri := range s.Resources {
		r, err := parse(uri)
		if err != nil {
			errs = append(errs, fmt.Errorf("resources[%d]: %q is no machine and no scale set; %w", i, uri, err))
			continue
		}
		groups = append(groups, machines.Group{Scope: r.subscription, Resource: r.String()})
	}
	if len(s.Tags) == 0 {
		return groups, errors.Join(errs...)
	}
	if len(c.subscriptions) == 0 {
		errs = append(errs, errors.New("tags: need subscriptions; list the subscriptions to search in subscriptions"))
	}
	for _, subscription := range c.subscriptions {
		groups = append(groups, machines.Group{Scope: strings.ToLower(subscription), Tags: machines.TagsOf(s.Tags)})
	}
	return groups, errors.Join(errs...)
}

// Round implements [machines.Cloud].
func (c *cloud) Round() machines.Reader {
	return &round{cloud: c}
}
