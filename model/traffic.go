package model

import "strings"

// Traffic says which endpoints of a service a client uses, where its registry says
// anything of it.
type Traffic struct {
	// NodeLocal has a client use the endpoints on its own node, and no other.
	NodeLocal bool `json:"nodeLocal,omitempty"`
	// Prefer has it use the endpoints near it before others.
	Prefer Preference `json:"prefer,omitempty"`
	// Affinity has what is alike go to one endpoint.
	Affinity Affinity `json:"affinity,omitempty"`
	// Headless has a client choose an endpoint by its address: the service has none of its
	// own, and its name stands for those of all endpoints.
	Headless bool `json:"headless,omitempty"`
	// ClusterLocal has a client use the endpoints of its own cluster, and no other. The
	// service means something else in each cluster, as the API server does.
	ClusterLocal bool `json:"clusterLocal,omitempty"`
}

// Affinity is by what calls are alike.
type Affinity string

// ClientIP is the address that a call comes from. Any other is none.
const ClientIP Affinity = "CLIENT_IP"

// Preference says how near endpoints are that are used before others.
type Preference string

// The preferences of Kubernetes. Any other is none.
const (
	PreferSameZone Preference = "SAME_ZONE"
	PreferSameNode Preference = "SAME_NODE"
)

// PreferenceNamed reads what Kubernetes calls the distribution of traffic, in either case of
// letters. A word that is not known says nothing.
func PreferenceNamed(distribution string) Preference {
	switch strings.ToLower(distribution) {
	case "preferclose", "prefersamezone": // the former is the older name
		return PreferSameZone
	case "prefersamenode":
		return PreferSameNode
	default:
		return ""
	}
}

// Near reports whether a client uses the endpoints near it before others.
func (t Traffic) Near() bool { return t.Prefer == PreferSameZone || t.Prefer == PreferSameNode }

// ByNode reports whether it matters which node a client is on.
func (t Traffic) ByNode() bool { return t.NodeLocal || t.Prefer == PreferSameNode }

// String lists what is said, with commas.
func (t Traffic) String() string {
	var said []string
	if t.NodeLocal {
		said = append(said, "nodeLocal")
	}
	if t.Prefer != "" {
		said = append(said, "prefer "+string(t.Prefer))
	}
	if t.Affinity != "" {
		said = append(said, "affinity "+string(t.Affinity))
	}
	if t.Headless {
		said = append(said, "headless")
	}
	if t.ClusterLocal {
		said = append(said, "clusterLocal")
	}
	return strings.Join(said, ", ")
}
