package admin

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/push"
)

// Authority is the certificate authority as GET /api/v1/authority shows it.
type Authority struct {
	TrustDomain string `json:"trustDomain"`
	// Signing is the SHA-256 fingerprint of the root that signs, and Roots are those of all
	// roots that clients are to trust.
	Signing string   `json:"signing"`
	Roots   []string `json:"roots"`
	TTL     string   `json:"ttl"`     // the validity of certificates
	Problem string   `json:"problem"` // why the folder cannot be read; empty if it can
	// Clients are the clients that ask for the roots.
	Clients AuthorityClients `json:"clients"`
}

// AuthorityClients are the numbers of clients that ask for the roots, and that have accepted
// all of them.
type AuthorityClients struct {
	Asking   int `json:"asking"`
	Accepted int `json:"accepted"`
	// Behind are the first of the others.
	Behind []AuthorityClient `json:"behind"`
}

// AuthorityClient is a client that has not accepted all roots.
type AuthorityClient struct {
	Output string `json:"output"`
	ID     string `json:"id"`
	State  string `json:"state"` // of the secret: accepted (an older one), waiting, refused or idle
	Reason string `json:"reason"`
	Age    string `json:"age"` // of the state
}

// mostBehind bounds the listed clients that have not accepted all roots.
const mostBehind = 20

// authority shows the authority, and how many clients trust its roots.
func (h holdings) authority(w http.ResponseWriter, _ *http.Request) {
	issuer := h.parts.Authority
	if issuer == nil {
		fail(w, http.StatusNotFound, "this Isthmus has no authority: name its folder in identity.authority.dir")
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
	complete := map[push.Version]bool{} // whether a version of the secret has all roots
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
		if status.State == push.ACKed && status.Version == newest.Version.String() && complete[newest.Version] {
			a.Clients.Accepted++
			continue
		}
		if len(a.Clients.Behind) < mostBehind {
			a.Clients.Behind = append(a.Clients.Behind, AuthorityClient{o.name, subscriber.Info.ID, string(status.State), status.Reason, age(now, status.Since)})
		}
	}
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

// authorityFindings adds a folder that cannot be read, and a root that expires.
func authorityFindings(f *findings, issuer *authority.Issuer) {
	if issuer == nil {
		return
	}
	const about = "authority"
	own := issuer.Authority()
	if fault := issuer.Fault(); fault != nil {
		f.add(SeverityError, about, fault.Since, "its folder cannot be read, and the keys before stay in use: "+fault.Err.Error(),
			"isthmus ca show --dir "+quoted(own.Dir())+"; it is read again by itself")
	}
	if until := own.Root().NotAfter; until.Before(f.now.Add(rotateWithin)) {
		f.add(SeverityWarning, about, time.Time{}, fmt.Sprintf("the root expires at %s, and with it every certificate", until.UTC().Format(time.RFC3339)),
			"isthmus ca rotate begin --dir "+quoted(own.Dir()))
	}
}

// rotateWithin is how long before its end a root should be rotated.
const rotateWithin = 180 * 24 * time.Hour
