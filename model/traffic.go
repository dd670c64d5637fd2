package model

import "strings"

// Traffic defines the endpoints of a service that a client uses, if its registry restricts
// them.
type Traffic struct {
	// NodeLocal limits a client to the endpoints on its own node.
	NodeLocal bool `json:"nodeLocal,omitempty"`
	// Prefer makes a client use near endpoints before others.
	Prefer Preference `json:"prefer,omitempty"`
	// Affinity sends similar calls to one endpoint.
	Affinity Affinity `json:"affinity,omitempty"`
	// Headless makes a client choose an endpoint by its address: the service has no address of
	// its own, and its name resolves to the addresses of all endpoints.
	Headless bool `json:"headless,omitempty"`
	// ClusterLocal limits a client to the endpoints of its own cluster. The service means
	// something different in each cluster, as the API server does.
	ClusterLocal bool `json:"clusterLocal,omitempty"`
}

// Affinity is the property by which calls count as similar.
type Affinity string

// ClientIP is the source address of a call. Other values mean no affinity.
const ClientIP Affinity = "CLIENT_IP"

// Preference is the distance up to which endpoints are used before others.
type Preference string

// The preferences of Kubernetes. Other values mean no preference.
const (
	PreferSameZone Preference = "SAME_ZONE"
	PreferSameNode Preference = "SAME_NODE"
)

// PreferenceNamed parses Kubernetes' name of a traffic distribution, ignoring case. An
// unknown name means no preference.
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

// String lists the set fields, separated by commas.
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
