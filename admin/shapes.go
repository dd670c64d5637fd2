package admin

import (
	"encoding/json"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// Source is a source as GET /api/v1/sources shows it.
type Source struct {
	Name        string             `json:"name"`
	Kind        string             `json:"kind"`
	State       string             `json:"state"`  // listing, live, stale or held
	Reason      string             `json:"reason"` // of the state, with its consequence
	Since       time.Time          `json:"since"`  // when the state began
	Age         string             `json:"age"`    // of the state
	LastListing time.Time          `json:"lastListing,omitzero"`
	Services    int                `json:"services"`
	Endpoints   int                `json:"endpoints"`
	Held        int                `json:"held"`
	HeldUntil   time.Time          `json:"heldUntil,omitzero"` // end of an operator's hold
	Carried     map[model.Kind]int `json:"carried,omitempty"`  // objects that are passed on to control planes alone, by kind
	Ignored     map[string]int     `json:"ignored"`            // objects of other kinds, by kind
	Rejected    []Rejected         `json:"refused"`
	Notices     []Notice           `json:"notices,omitempty"`
	Exchanges   []Exchange         `json:"types,omitempty"` // of a registry that pushes
}

// Exchange is the statistics of one type or collection between a registry that pushes and
// its source, since Isthmus started.
type Exchange struct {
	Type      string `json:"type"`
	Resources int    `json:"resources"`        // held resources
	Echoed    int    `json:"echoed,omitempty"` // of these, resources with parts that came through this Isthmus and are left out
	Received  uint64 `json:"received"`         // answers
	ACKed     uint64 `json:"accepted"`
	NACKed    uint64 `json:"refused"`
	Age       string `json:"age,omitempty"`    // of the last answer
	Reason    string `json:"reason,omitempty"` // of the last NACK, until an ACK
}

// Release is the answer to POST /api/v1/sources/NAME/release.
type Release struct {
	Released int `json:"released"` // held records that were deleted now, and endpoints kept by an output
}

// Rejected is an invalid object.
type Rejected struct {
	Object string `json:"object"` // "ServiceEntry default/reviews"
	Where  string `json:"where"`  // "shop.yaml:12"
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`
}

// Complaint returns the reason, with the field if one is at fault.
func (r Rejected) Complaint() string { return complaint(r.Field, r.Reason) }

// Notice is an effect of an object without a fault.
type Notice struct {
	Object string `json:"object"` // "consumer default//shop/web"
	Where  string `json:"where"`  // the affected object
	Text   string `json:"text"`
}

// Service is a service as GET /api/v1/services shows it.
type Service struct {
	Host       string   `json:"host"`
	Written    string   `json:"written,omitempty"` // the host as its registry writes it, if that is not Host
	Namespace  string   `json:"namespace"`
	Resolution string   `json:"resolution"`
	Ports      []Port   `json:"ports"`
	Addresses  []string `json:"addresses,omitempty"`
	// AddressesOf has the source of each address that another source than the first has in its own right.
	AddressesOf map[string]string `json:"addressesOf,omitempty"`
	ExportTo    []string          `json:"exportTo,omitempty"` // left out if it is exported to all namespaces
	Traffic     string            `json:"traffic,omitempty"`  // clients' choice of endpoints, where it is not the default
	Sources     []string          `json:"sources"`            // in merge order
	Endpoints   Counts            `json:"endpoints"`
	Revision    uint64            `json:"revision"`
	// LastChanged is when the service or an endpoint last changed, with one host only. It is
	// missing if nothing has changed since the first listings after the start of this process.
	LastChanged    time.Time       `json:"lastChanged,omitzero"`
	LastChangedAge string          `json:"lastChangedAge,omitempty"` // since then
	Stale          int             `json:"stale,omitempty"`          // records that are not their source's newest version
	Conflicts      []Conflict      `json:"conflicts"`
	NotOffered     []NotOffered    `json:"notOffered,omitempty"`
	Shares         []Share         `json:"shares,omitempty"`         // of the backends of its split
	SharesLocality string          `json:"sharesLocality,omitempty"` // ignore or first, of its split
	Records        []Contributor   `json:"records,omitempty"`        // with one host only
	Instances      []EndpointClaim `json:"instances,omitempty"`
}

// Port is a port of a service.
type Port struct {
	Number   uint32 `json:"number"`
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	// Resolution is that of the port, if it is not the service's.
	Resolution string `json:"resolution,omitempty"`
}

// Counts counts endpoints.
type Counts struct {
	Healthy int `json:"healthy"`
	Total   int `json:"total"`
	// Unserved are the healthy endpoints that an output gives to none of its clients, on one
	// port at least.
	Unserved int `json:"unserved"`
}

// Conflict is a contradiction between two records, or between two services of which the
// clients of an output can have only one.
type Conflict struct {
	Output string `json:"output,omitempty"`
	Field  string `json:"field"`
	Kept   string `json:"kept"` // record
	Lost   string `json:"lost"` // record
	Reason string `json:"reason"`
}

// NotOffered means that clients of a kind do not get a service.
type NotOffered struct {
	Output string `json:"output"`
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
}

// Contributor is a record of a service.
type Contributor struct {
	Record  string   `json:"record"`
	Path    []string `json:"path,omitempty"` // the Isthmuses that it came through
	Place   string   `json:"place,omitempty"`
	LeftOut string   `json:"leftOut,omitempty"` // why the record has no part in the service
	Stale   string   `json:"stale,omitempty"`   // why the record is not the source's newest version
	Held    string   `json:"held,omitempty"`    // why the record exists although its source no longer lists it
	Age     string   `json:"age,omitempty"`     // of being stale or held
}

// EndpointClaim is one record's claim that an endpoint serves a port.
type EndpointClaim struct {
	ServicePort uint32   `json:"servicePort"`
	Address     string   `json:"address"`
	Also        []string `json:"additionalAddresses,omitempty"`
	Port        uint32   `json:"port,omitempty"`
	Health      string   `json:"health"`
	Record      string   `json:"record"`
	Path        []string `json:"path,omitempty"` // the Isthmuses that it came through
	Counts      bool     `json:"counts"`         // the first record of an endpoint gives its attributes
	// ServedHealth is the health that another source knows, on the claim that counts: its source has been stale for
	// long. It is missing if clients are given the record's health.
	ServedHealth string `json:"servedHealth,omitempty"`
	Held         bool   `json:"held,omitempty"`     // its source no longer lists it
	Unserved     string `json:"unserved,omitempty"` // why no client is given the endpoint, on the claim that counts
	// LastChanged is when the endpoint came, or a record of it last came, changed or went, on
	// the claim that counts. It is missing if the endpoint has not changed since the first
	// listings after the start of this process.
	LastChanged    time.Time         `json:"lastChanged,omitzero"`
	LastChangedAge string            `json:"lastChangedAge,omitempty"` // since then
	Labels         map[string]string `json:"labels,omitempty"`
	Locality       string            `json:"locality,omitempty"`
	Network        string            `json:"network,omitempty"`
	Node           string            `json:"node,omitempty"`
	Weight         uint32            `json:"weight,omitempty"`
}

// Client is a client as GET /api/v1/clients shows it.
type Client struct {
	ID             string                `json:"id"`
	Output         string                `json:"output"`
	Protocol       string                `json:"protocol"`
	Kind           string                `json:"kind"` // flavour of the resources it gets
	Namespace      string                `json:"namespace"`
	Scope          string                `json:"scope,omitempty"` // the record that narrows its view
	Identity       string                `json:"identity"`
	Proven         bool                  `json:"proven"`
	ConnectedSince time.Time             `json:"connectedSince"`
	Age            string                `json:"age"` // of the connection
	Types          map[string]ClientType `json:"types"`
	Notices        []Notice              `json:"notices,omitempty"`
}

// ClientType is a client's state of one type of resources.
type ClientType struct {
	State      string `json:"state"`  // accepted, waiting, rejected or idle
	Reason     string `json:"reason"` // of the state
	Age        string `json:"age"`    // of the state
	Sent       string `json:"sent"`   // version last sent
	ACKed      string `json:"accepted"`
	Subscribed int    `json:"subscribed"` // names; -1 for everything
	Held       int    `json:"held"`       // resources that it holds
	Pending    int    `json:"pending"`    // changes not sent yet
	NACKed     int    `json:"refused"`    // responses it has NACKed so far

	Responses int `json:"responses"` // number of sent responses, and of ACKed ones
	ACKs      int `json:"acks"`
	// LastNACK is set if it has NACKed anything, regardless of later answers.
	LastNACK *NACK `json:"lastNack,omitempty"`
}

// NACK is why, and how long ago, a client NACKed a response.
type NACK struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	Age    string    `json:"age"`
}

// ResourcePage is a part of a client's resources, as GET /api/v1/clients/ID/resources shows
// it.
type ResourcePage struct {
	Resources []ClientResource `json:"resources"` // by output, stream, type and name
	// Next is the value of the parameter from for the next page; empty on the last.
	Next string `json:"next,omitempty"`

	content int // bytes of content so far
}

// ClientResource is a client's state of one resource.
type ClientResource struct {
	Output         string    `json:"output"`
	Protocol       string    `json:"protocol"`
	ConnectedSince time.Time `json:"connectedSince"`
	Type           string    `json:"type"`
	Name           string    `json:"name"`
	Version        string    `json:"version"` // of the held resource; empty if none is held, or it is unknown
	State          string    `json:"state"`   // accepted, waiting, rejected or idle
	Reason         string    `json:"reason"`  // of the state
	Age            string    `json:"age"`     // of the state; for an ACKed resource, of the version
	Pending        bool      `json:"pending"` // a newer version may exist, which is not considered yet

	// With content: the newest resource of the name for the client, and its version. It is the
	// resource that the client has if the versions are equal. Both are left out if there is
	// none, and where resources are sent as increments.
	ContentVersion string          `json:"contentVersion,omitempty"`
	Content        json.RawMessage `json:"content,omitempty"`
}

// ServiceClient is a client that has resources of a service, as
// GET /api/v1/services/HOST/clients shows it.
type ServiceClient struct {
	Output    string              `json:"output"`
	ID        string              `json:"id"`
	Kind      string              `json:"kind"`
	Namespace string              `json:"namespace"`
	Resources []ExplainedResource `json:"resources"` // of the service, as far as the client holds them or asks for them
}

// Authority is the certificate authority as GET /api/v1/authority shows it.
type Authority struct {
	TrustDomain string `json:"trustDomain"`
	// Signing is the SHA-256 fingerprint of the root that signs, and Roots are the fingerprints of
	// all roots that clients are to trust.
	Signing string   `json:"signing"`
	Roots   []string `json:"roots"`
	// Issuing is the fingerprint of the issuing certificate; empty if the root signs directly.
	Issuing string `json:"issuing,omitempty"`
	TTL     string `json:"ttl"`     // the validity of certificates
	Problem string `json:"problem"` // why the folder cannot be read; empty if it can
	// Clients are the clients that ask for the roots.
	Clients AuthorityClients `json:"clients"`
}

// AuthorityClients are the numbers of clients that ask for the roots, and that have ACKed
// all of them.
type AuthorityClients struct {
	Asking int `json:"asking"`
	ACKed  int `json:"acked"`
	// Behind are the others by account: one client of each of the first accounts.
	Behind []AuthorityClient `json:"behind"`
}

// AuthorityClient is the first client of an account that has not ACKed all roots.
type AuthorityClient struct {
	// Identity is the proven one, and Streams is the number of its clients that have not ACKed. It
	// may have more names than one: each client names itself.
	Identity string `json:"identity"`
	Streams  int    `json:"streams"`

	Output string `json:"output"`
	ID     string `json:"id"`
	State  string `json:"state"` // of the secret, as of a [ClientResource]
	Reason string `json:"reason"`
	Age    string `json:"age"` // of the state
}

// Certificate is the certificates of an account that its clients were sent, as
// GET /api/v1/certificates shows them.
type Certificate struct {
	Output   string `json:"output"`
	Identity string `json:"identity"`
	// From is when the newest one became it, and Renewed is when its successor does.
	From    time.Time `json:"from"`
	Renewed time.Time `json:"renewed"`
	// Until is the end of the last valid one.
	Until time.Time `json:"until"`
	// Streams is the number of open streams that are sent the successor. LastStream is when the last
	// one began or ended, and Age is the time since.
	Streams    int       `json:"streams"`
	LastStream time.Time `json:"lastStream"`
	Age        string    `json:"age"`
}
