package azure

import (
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/machines"
)

// view is the state of a machine as Azure reports it.
type view struct {
	provisioning *string
	statuses     []*armcompute.InstanceViewStatus
	health       *armcompute.VirtualMachineHealthStatus // nil without the health extension
}

// state returns whether a machine is given traffic.
func (v view) state() machines.State {
	health := v.healthState()
	switch strings.ToLower(text(v.provisioning)) {
	case "deleting":
		return machines.Ending
	case "succeeded", "updating", "":
	case "failed": // an operation failed, such as an extension's; the machine may be well
		if health != machines.Serving || v.health == nil {
			return machines.NotServing
		}
	default:
		return machines.NotServing
	}
	switch v.power() {
	case "running":
		return health
	case "":
		return machines.Unknown
	default:
		return machines.NotServing
	}
}

// power returns the power state, such as running; empty if Azure does not know it.
func (v view) power() string {
	for _, s := range v.statuses {
		if s == nil {
			continue
		}
		if kind, state, _ := strings.Cut(strings.ToLower(text(s.Code)), "/"); kind == "powerstate" && state != "unknown" {
			return state
		}
	}
	return ""
}

// healthState returns the report of the health extension. The report is "unknown" if
// the application does not answer, answers wrongly, or its reports do not arrive.
func (v view) healthState() machines.State {
	if v.health == nil || v.health.Status == nil {
		return machines.Serving
	}
	_, state, _ := strings.Cut(strings.ToLower(text(v.health.Status.Code)), "/")
	switch state {
	case "healthy":
		return machines.Serving
	case "unknown":
		return machines.Unanswered
	case "":
		return machines.Unknown
	default: // unhealthy, initializing, busy
		return machines.NotServing
	}
}

// locality returns the region and the first zone, in the form of Kubernetes nodes in
// Azure: zone 2 of westeurope is westeurope-2.
func locality(location *string, zones []*string) model.Locality {
	l := model.Locality{Region: strings.ToLower(strings.ReplaceAll(text(location), " ", ""))}
	if len(zones) > 0 && text(zones[0]) != "" {
		l.Zone = l.Region + "-" + text(zones[0])
	}
	return l
}

// text returns the value of a field; empty if the field is left out.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func tagsOf(tags map[string]*string) map[string]string {
	all := make(map[string]string, len(tags))
	for key, value := range tags {
		all[key] = text(value)
	}
	return all
}

// hasAll reports whether tags have all of some others. Azure ignores case in tag
// names, not in values.
func hasAll(tags map[string]*string, wanted map[string]string) bool {
	for name, value := range wanted {
		if !has(tags, name, value) {
			return false
		}
	}
	return true
}

func has(tags map[string]*string, name, value string) bool {
	for key, is := range tags {
		if strings.EqualFold(key, name) && text(is) == value {
			return true
		}
	}
	return false
}
