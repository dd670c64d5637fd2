package azure

import (
	"errors"
	"strings"
)

// resource is a machine or a scale set, as a URI names it. All fields are in lower
// case, as Azure ignores case.
type resource struct{ subscription, group, kind, name string }

// Kinds of resources.
const (
	virtualMachines = "virtualmachines"
	scaleSets       = "virtualmachinescalesets"
)

var errURI = errors.New("write it as Azure does, /subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/Microsoft.Compute/virtualMachines/NAME, " +
	"or with virtualMachineScaleSets")

// parse reads the URI of a machine or a scale set.
func parse(uri string) (resource, error) {
	kind, r, err := split(uri)
	if err != nil || kind != "microsoft.compute" || r.kind != virtualMachines && r.kind != scaleSets {
		return resource{}, errURI
	}
	return r, nil
}

// split reads a URI of any resource directly in a resource group.
func split(uri string) (provider string, r resource, err error) {
	parts := strings.Split(strings.ToLower(uri), "/")
	if len(parts) != 9 || parts[0] != "" || parts[1] != "subscriptions" || parts[3] != "resourcegroups" || parts[5] != "providers" {
		return "", resource{}, errURI
	}
	for _, i := range []int{2, 4, 6, 7, 8} {
		if parts[i] == "" {
			return "", resource{}, errURI
		}
	}
	return parts[6], resource{subscription: parts[2], group: parts[4], kind: parts[7], name: parts[8]}, nil
}

func (r resource) String() string {
	return "/subscriptions/" + r.subscription + "/resourcegroups/" + r.group + "/providers/microsoft.compute/" + r.kind + "/" + r.name
}

// machineID returns the lasting name of a machine by its URI: subscription, group and
// name, with the number of the instance in a uniform set.
func machineID(uri string) (id string, ok bool) {
	parts := strings.Split(strings.ToLower(uri), "/")
	switch {
	case len(parts) == 9 && parts[7] == virtualMachines:
		return strings.Join([]string{parts[2], parts[4], parts[8]}, "/"), true
	case len(parts) == 11 && parts[7] == scaleSets && parts[9] == virtualMachines:
		return strings.Join([]string{parts[2], parts[4], parts[8], parts[10]}, "/"), true
	}
	return "", false
}

// same reports whether two URIs name one resource.
func same(a, b string) bool { return strings.EqualFold(a, b) }
