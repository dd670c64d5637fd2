package admin

import (
	"crypto/x509"
	"encoding/pem"
	"iter"
	"net/http"
	"slices"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// holders lists the clients that have resources of a host's services, or ask for them.
func (h holdings) holders(w http.ResponseWriter, r *http.Request) {
	services := slices.Collect(h.parts.Snapshot().ByHost(model.Name(r.PathValue("host"))))
	if len(services) == 0 {
		unknownService(w, r.PathValue("host"))
		return
	}
	now := time.Now()
	replyList(w, h.parts.Log, func(yield func(ServiceClient) bool) {
		for _, o := range h.parts.served() {
			for shape := range o.holders(services, now) {
				if r.Context().Err() != nil || !yield(shape) {
					return
				}
			}
		}
	})
}

// holders yields the clients of an output that have resources of some services, or ask for
// them. A client with several streams comes several times.
func (o served) holders(services []*catalog.Service, now time.Time) iter.Seq[ServiceClient] {
	return func(yield func(ServiceClient) bool) {
		if o.Named == nil {
			return
		}
		named := namesByKind(o, services)
		for subscriber := range o.Engine.All() {
			client := subscriber.Client()
			shape := ServiceClient{Output: o.name, ID: subscriber.Info.ID, Kind: client.Kind, Namespace: client.Namespace}
			for _, name := range named[client.Kind] {
				if status, ok := subscriber.Resource(name.Type, name.Name); ok {
					shape.Resources = append(shape.Resources, heldShape(name, status, now))
				}
			}
			if len(shape.Resources) > 0 && !yield(shape) {
				return
			}
		}
	}
}

// namesByKind returns the resources of some services, by the kind of clients. Services of one
// host in several namespaces have the same names.
func namesByKind(o served, services []*catalog.Service) map[string][]output.ResourceName {
	all, seen := map[string][]output.ResourceName{}, map[string]map[output.ResourceName]bool{}
	for _, kind := range o.Kinds {
		seen[kind] = map[output.ResourceName]bool{}
		for _, s := range services {
			for _, name := range o.Named(s, kind) {
				if !seen[kind][name] {
					seen[kind][name], all[kind] = true, append(all[kind], name)
				}
			}
		}
	}
	return all
}

func heldShape(name output.ResourceName, status session.ResourceStatus, now time.Time) ExplainedResource {
	return ExplainedResource{
		Type: name.Type, Name: name.Name, Version: name.Version, Held: status.Version, State: string(status.State), Reason: status.Reason,
		Age: age(now, status.Since), Pending: status.Pending,
	}
}

// mostBehind bounds the listed accounts with clients that have not ACKed all roots.
const mostBehind = 20

// authority shows the authority, and how many clients trust its roots.
func (h holdings) authority(w http.ResponseWriter, _ *http.Request) {
	issuer := h.parts.Authority
	if issuer == nil {
		fail(w, http.StatusNotFound, "this Isthmus issues no certificates: name the folder of an authority in identity.authority.dir, without identity.files")
		return
	}
	own := issuer.Authority() // before the clients, which are sent it later
	a := Authority{
		TrustDomain: own.TrustDomain().Name(), Signing: authority.Fingerprint(own.Root()), TTL: issuer.TTL().String(),
		Clients: AuthorityClients{Behind: []AuthorityClient{}},
	}
	for _, root := range own.Roots() {
		a.Roots = append(a.Roots, authority.Fingerprint(root))
	}
	if issuing := own.Issuing(); issuing != nil {
		a.Issuing = authority.Fingerprint(issuing)
	}
	if fault := issuer.Fault(); fault != nil {
		a.Problem = fault.Err.Error()
	}
	now := time.Now()
	for _, o := range h.parts.served() {
		o.trust(&a, now)
	}
	reply(w, h.parts.Log, a)
}

// trust adds the clients of an output.
func (o served) trust(a *Authority, now time.Time) {
	if o.Authorities.Name == "" {
		return
	}
	complete := map[world.Version]bool{} // whether a version of the secret has all roots
	for subscriber := range o.Engine.All() {
		status, asks := subscriber.Resource(o.Authorities.Type, o.Authorities.Name)
		if !asks {
			continue
		}
		newest := o.Engine.Read(subscriber.Client(), o.Authorities.Type, o.Authorities.Name)
		if newest == nil { // it proves no account
			continue
		}
		if _, known := complete[newest.Version]; !known {
			complete[newest.Version] = containsAll(fingerprintsIn(newest.Body), a.Roots)
		}
		a.Clients.Asking++
		if status.State == session.ACKed && status.Version == newest.Version.String() && complete[newest.Version] {
			a.Clients.ACKed++
			continue
		}
		account := subscriber.Client().Account
		if i := slices.IndexFunc(a.Clients.Behind, func(c AuthorityClient) bool { return c.Identity == account }); i >= 0 {
			a.Clients.Behind[i].Streams++
		} else if len(a.Clients.Behind) < mostBehind {
			a.Clients.Behind = append(a.Clients.Behind, AuthorityClient{account, 1, o.name, subscriber.Info.ID, string(status.State), status.Reason, age(now, status.Since)})
		}
	}
}

// certificates lists the valid certificates that clients were sent.
func (h holdings) certificates(w http.ResponseWriter, _ *http.Request) {
	now := time.Now()
	replyList(w, h.parts.Log, func(yield func(Certificate) bool) {
		for _, o := range h.parts.served() {
			if o.Certificates == nil {
				continue
			}
			for _, one := range o.Certificates.All() {
				if !yield(Certificate{o.name, one.Identity, one.Window.From, one.Window.Until, one.Until, one.Streams, one.Last, age(now, one.Last)}) {
					return
				}
			}
		}
	})
}

// fingerprintsIn returns the fingerprints of the roots in a secret.
func fingerprintsIn(body []byte) (list []string) {
	packed, secret := &anypb.Any{}, &tlsv3.Secret{}
	if proto.Unmarshal(body, packed) != nil || packed.UnmarshalTo(secret) != nil {
		return nil
	}
	text := secret.GetValidationContext().GetTrustedCa().GetInlineBytes()
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return list
		}
		if root, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, authority.Fingerprint(root))
		}
		text = rest
	}
}

func containsAll(list, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(one string) bool { return !slices.Contains(list, one) })
}
