package azure

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/isthmus-mesh/isthmus/internal/spiffe"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/machines"
)

// Allow lets AzureResource objects of some namespaces name machines of some
// subscriptions and resource groups.
type Allow struct {
	// Namespaces are the namespaces of the objects; "*" is every one.
	Namespaces []string `json:"namespaces"`
	// Subscriptions are ids; "*" is every one.
	Subscriptions []string `json:"subscriptions"`
	// Groups are resource groups of the subscriptions; empty means all of them.
	Groups []string `json:"groups"`
}

const every = "*"

func (a Allow) validate(prefix string) error {
	var errs []error
	need := func(holds bool, format string, args ...any) {
		if !holds {
			errs = append(errs, fmt.Errorf(prefix+format, args...))
		}
	}
	need(len(a.Namespaces) > 0, "namespaces: missing; name the namespaces of the objects, or write [\"*\"] for every one")
	need(len(a.Subscriptions) > 0, "subscriptions: missing; name ids of subscriptions, or write [\"*\"] for every one")
	for i, n := range a.Namespaces {
		need(n == every || spiffe.IsNamespace(n), "namespaces[%d]: %q is no name of a namespace; write one such as default, or \"*\" for every one", i, n)
	}
	for i, s := range a.Subscriptions {
		need(s == every || isSubscription(s), "subscriptions[%d]: %q is no id of a subscription; write it without /subscriptions/, or \"*\" for every one", i, s)
	}
	for i, g := range a.Groups {
		need(isSubscription(g) && g != every, "groups[%d]: %q is no name of a resource group; leave groups out for all of them", i, g)
	}
	return errors.Join(errs...)
}

// includes reports whether a namespace may name resources of a resource group. An
// empty group stands for the whole subscription.
func (a Allow) includes(namespace, subscription, group string) bool {
	has := func(list []string, one string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return s == every || same(s, one) })
	}
	return has(a.Namespaces, namespace) && has(a.Subscriptions, subscription) && (len(a.Groups) == 0 || group != "" && has(a.Groups, group))
}

// rights are the machines that objects may name.
type rights struct {
	allow         []Allow
	subscriptions []string // in which machines are selected by tags
}

// check returns an error for the first resource or tag that the service's namespace
// may not name; nil if all are allowed.
func (r rights) check(s machines.Service) error {
	may := func(subscription, group string) bool {
		return slices.ContainsFunc(r.allow, func(a Allow) bool { return a.includes(s.Namespace, subscription, group) })
	}
	for i, uri := range s.Resources {
		is, err := parse(uri)
		if err == nil && !may(is.subscription, is.group) { // Groups reports any other error
			return fmt.Errorf("spec.resources[%d]: objects of the namespace %s may not name machines of the resource group %s in the subscription %s; have the operator add it to allow of the source",
				i, s.Namespace, is.group, is.subscription)
		}
	}
	if len(s.Tags) == 0 {
		return nil
	}
	for _, subscription := range r.subscriptions {
		if !may(subscription, "") {
			return fmt.Errorf("spec.tags: objects of the namespace %s may not select machines of the whole subscription %s; name resources, or have the operator allow the subscription without groups",
				s.Namespace, subscription)
		}
	}
	return nil
}

// confine wraps a function that reads objects. An object is rejected if it names
// machines that its namespace may not name.
func (r rights) confine(read func(context.Context) machines.Objects) func(context.Context) machines.Objects {
	return func(ctx context.Context) machines.Objects {
		o := read(ctx)
		defined := o.Definitions
		o.Definitions = nil
		o.Rejected = slices.Clone(o.Rejected)
		for _, d := range defined {
			err := r.check(d.Service)
			if err == nil {
				o.Definitions = append(o.Definitions, d)
				continue
			}
			// The rejection names no record: records that the object defined before
			// are removed.
			o.Rejected = append(o.Rejected, model.Rejection{Place: d.Where, Object: d.Where, Where: d.Where, Reason: err.Error()})
		}
		return o
	}
}
