package admin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
)

// previewBytes bounds the request of a preview.
const previewBytes = 1 << 20

// SplitPreview is the effect that another split of a host would have, with the endpoints of the
// moment, as POST /api/v1/splits/preview shows it.
type SplitPreview struct {
	Host      string          `json:"host"`
	Namespace string          `json:"namespace"`
	Now       []Share         `json:"now"`      // shares in force
	Expected  []Share         `json:"expected"` // shares with the other split
	Endpoints EndpointChanges `json:"endpoints"`
	Clients   int             `json:"clients"`  // connected ones that have resources of the host, or ask for them
	Problems  []string        `json:"problems"` // why the other split would not divide calls as it asks
}

// EndpointChanges counts the endpoints of a host that another split changes, by service port.
type EndpointChanges struct {
	Added      int `json:"added"`      // served with the other split alone
	Removed    int `json:"removed"`    // served without the other split alone
	Reweighted int `json:"reweighted"` // served with another weight
}

// previewer tells the effect of splits that are not in use. It changes nothing.
type previewer struct{ parts Parts }

// serve answers with the effect of each split of the request. A split without backends is none.
func (p previewer) serve(w http.ResponseWriter, r *http.Request) {
	var asked []ConfigSplit
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, previewBytes))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&asked)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		fail(w, http.StatusRequestEntityTooLarge, "the request has more than %d bytes; ask for fewer splits at a time", previewBytes)
		return
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "the request is no list of splits: %v; compare 'splits' of /api/v1/config", err)
		return
	}
	wanted := make([]*split.Split, len(asked))
	for i, s := range asked {
		if wanted[i], err = s.parse(); err != nil {
			fail(w, http.StatusBadRequest, "split %d, of %s: %v", i, s.Host, err)
			return
		}
	}
	snapshot, outputs := p.parts.Snapshot(), p.parts.served()
	replyList(w, p.parts.Log, func(yield func(SplitPreview) bool) {
		for i, s := range asked {
			one := preview(snapshot, outputs, catalog.KeyOf(s.Namespace, s.Host), wanted[i])
			if r.Context().Err() != nil || !yield(one) {
				return
			}
		}
	})
}

// parse returns the split in the form of the catalog; nil without backends.
func (s ConfigSplit) parse() (*split.Split, error) {
	if len(s.Backends) == 0 {
		return nil, nil //nolint:nilnil // no split is a valid one
	}
	if len(s.Backends) > split.MostBackends {
		return nil, fmt.Errorf("it has %d backends, and %d are the most", len(s.Backends), split.MostBackends)
	}
	of, sum := &split.Split{NearFirst: s.Locality == "first"}, 0
	for _, b := range s.Backends {
		if b.Weight < 0 || b.Weight > split.MostWeight {
			return nil, fmt.Errorf("the weight %d is not between 0 and %d", b.Weight, split.MostWeight)
		}
		sum += b.Weight
		backend := model.Backend{Source: b.Source, Labels: model.MapOf(b.Labels), Weight: uint32(b.Weight)} //nolint:gosec // checked above
		if b.Host != "" {
			backend.Service = model.ServiceName{Namespace: cmp.Or(b.Namespace, s.Namespace), Host: b.Host}
		}
		of.Backends = append(of.Backends, backend)
	}
	if sum == 0 {
		return nil, errors.New("it has only weights of 0; give at least one backend a weight")
	}
	return of, nil
}

// preview compares a service with the same service under another split; nil is none.
func preview(snapshot *catalog.Snapshot, outputs []served, key catalog.ServiceKey, wanted *split.Split) SplitPreview {
	p := SplitPreview{Host: key.Host, Namespace: key.Namespace, Now: []Share{}, Expected: []Share{}, Problems: []string{}}
	now, known := snapshot.Service(key)
	next := snapshot.Divided(key, wanted)
	if known || wanted != nil {
		p.Problems = append(p.Problems, unmetShares(key, next)...)
	}
	if !known {
		return p
	}
	p.Now, p.Expected = append(p.Now, sharesOf(now)...), append(p.Expected, sharesOf(next)...)
	for _, port := range now.Ports {
		p.Endpoints.compare(now.Endpoints(port.Number), next.Endpoints(port.Number))
	}
	clients := map[[2]string]bool{} // by output and id
	for _, o := range outputs {
		for c := range o.holders([]*catalog.Service{now}, time.Now()) {
			// Services of one host in several namespaces have the same resources.
			if seen, ok := snapshot.Resolve(catalog.Viewer{Namespace: c.Namespace}, key.Host); ok && seen.Key == key {
				clients[[2]string{o.name, c.ID}] = true
			}
		}
	}
	p.Clients = len(clients)
	return p
}

// compare counts the endpoints of a port that differ.
func (c *EndpointChanges) compare(now, next *catalog.Endpoints) {
	for e := range now.All() {
		switch after, stays := next.Get(e.ID(0)); {
		case !stays:
			c.Removed++
		case after.Weight != e.Weight:
			c.Reweighted++
		}
	}
	for e := range next.All() {
		if _, had := now.Get(e.ID(0)); !had {
			c.Added++
		}
	}
}
