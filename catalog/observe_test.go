package catalog_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// world is all that a snapshot says, as plain values. Revisions are left out:
// they tell how the snapshot came about.
type world struct {
	Services map[catalog.ServiceKey]observed
	Primed   []string
	Totals   catalog.Totals
	Seen     map[string][]catalog.ServiceKey // by a namespace

	Opaques map[catalog.OpaqueKey]opaque

	Held map[model.Ref]string // why, of the records that speak of anything
}

// opaque is one object that is carried.
type opaque struct {
	Spec    model.Opaque
	Records []catalog.Contributor
}

// observed is one service.
type observed struct {
	Definition     definition
	Ports          map[uint32]portView // what serves each port
	Healthy, Total int
}

type definition struct {
	Meta                                 model.Meta
	Addresses, ExportTo, SubjectAltNames []string
	ByCluster                            map[string][]string // what clients of each cluster have
	Clusters                             map[string]bool     // with addresses
	Brought                              map[string]string   // by cluster and address, the later source that it has its standing from
	Location                             model.Location
	Traffic                              model.Traffic
	Resolution                           model.Resolution
	Resolutions                          map[uint32]model.Resolution // by port
	Ports                                []model.Port
	Records                              []catalog.Contributor
	Conflicts                            []catalog.Conflict
	Rank                                 int
	Written                              string
}

// portView is what serves one port.
type portView struct {
	catalog.EndpointCounts
	Places []place // by address and port
}

// place is an endpoint with all claims on it, the one that counts first.
type place struct {
	Address string
	Port    uint32
	Network string
	Health  model.Health // as clients are given it
	Claims  []claim      // as their records have them
}

type claim struct {
	Record   model.Ref
	Endpoint model.Endpoint
	Owner    model.Ref
	Path     model.Path // none for a workload: services select it here
}

var (
	sources = []string{"a", "b", "c", "d"} // of which b and a have a rank
	order   = []string{"b", "a"}
	lookers = []string{"x", "y", "z", ""} // namespaces that look
	// clusters that clients are of, of which no record says the last.
	clusters = []string{"", "east", "west", "north"}
	numbers  = []uint32{0, 1, 80, 81, 8080} // ports, also some that no service has
)

// observe reads everything that a snapshot offers, each thing by all ways
// there are to it, and returns it, or an error if two ways disagree.
func observe(s *catalog.Snapshot) (world, error) {
	w := world{Services: map[catalog.ServiceKey]observed{}, Totals: s.Totals(), Seen: map[string][]catalog.ServiceKey{}}
	var keys []catalog.ServiceKey
	for service := range s.Services() {
		if got, ok := s.Service(service.Key); !ok || got != service {
			return w, fmt.Errorf("%s is listed and not found", service.Key)
		}
		keys = append(keys, service.Key)
		w.Services[service.Key] = observeService(service)
	}
	if !slices.IsSortedFunc(keys, compareKeys) || len(keys) != w.Totals.Services {
		return w, fmt.Errorf("services in a wrong order or number, total %d: %v", w.Totals.Services, keys)
	}
	for _, source := range sources {
		if s.Primed(source) {
			w.Primed = append(w.Primed, source)
		}
	}
	for _, namespace := range lookers {
		for service := range s.Visible(catalog.Viewer{Namespace: namespace}) {
			if got, _ := s.Resolve(catalog.Viewer{Namespace: namespace}, service.Key.Host); got != service {
				return w, fmt.Errorf("%q sees %s and resolves it otherwise", namespace, service.Key)
			}
			w.Seen[namespace] = append(w.Seen[namespace], service.Key)
		}
	}
	err := w.observeUnited(s)
	w.observeHeld(s.Holds(sources...))
	return w, err
}

// observeHeld looks up what each record is held for that speaks of anything.
func (w *world) observeHeld(holds model.Holds) {
	w.Held = map[model.Ref]string{}
	note := func(ref, owner model.Ref) {
		if hold, held := holds.Of(ref, owner); held {
			w.Held[ref] = hold.Reason
		}
	}
	contribute := func(records []catalog.Contributor) {
		for _, c := range records {
			note(c.Record, model.Ref{})
		}
	}
	for _, o := range w.Services {
		contribute(o.Definition.Records)
		for _, p := range o.Ports {
			for _, at := range p.Places {
				for _, c := range at.Claims {
					note(c.Record, c.Owner)
				}
			}
		}
	}
	for _, o := range w.Opaques {
		contribute(o.Records)
	}
}

// observeUnited reads the carried objects.
func (w *world) observeUnited(s *catalog.Snapshot) error {
	w.Opaques = map[catalog.OpaqueKey]opaque{}
	var carried []catalog.OpaqueKey
	for o := range s.Opaques() {
		if got, ok := s.Opaque(o.Key); !ok || got != o {
			return fmt.Errorf("%s is listed and not found", o.Key)
		}
		carried = append(carried, o.Key)
		spec := o.Opaque
		spec.Created = spec.Created.UTC()
		w.Opaques[o.Key] = opaque{spec, inUTC(o.Records)}
	}
	if !slices.IsSortedFunc(carried, compareOpaqueKeys) {
		return fmt.Errorf("a wrong order: %v", carried)
	}
	return nil
}

func compareOpaqueKeys(a, b catalog.OpaqueKey) int {
	return slices.Compare([]string{string(a.Kind), a.Namespace, a.Name}, []string{string(b.Kind), b.Namespace, b.Name})
}

// inUTC copies records; an instant is one by whatever clock.
func inUTC(records []catalog.Contributor) []catalog.Contributor {
	records = slices.Clone(records)
	for i := range records {
		records[i].Since = records[i].Since.UTC()
	}
	return records
}

func compareKeys(a, b catalog.ServiceKey) int {
	return slices.Compare([]string{a.Host, a.Namespace}, []string{b.Host, b.Namespace})
}

func observeService(s *catalog.Service) observed {
	o := observed{Definition: observeDefinition(s.Definition), Ports: map[uint32]portView{}}
	o.Definition.Written = s.Written()
	o.Healthy, o.Total = s.Counts()
	for _, number := range numbers {
		e := s.Endpoints(number)
		if e != nil {
			o.Ports[number] = observePort(e)
		}
		if tally := o.Ports[number].EndpointCounts; tally != e.Counts() {
			panic(fmt.Sprintf("%s counts %+v, of %+v", s.Key, e.Counts(), tally))
		}
		if port, ok := s.Port(number); ok != slices.Contains(s.Ports, port) {
			panic(fmt.Sprintf("%s has port %d: %t", s.Key, number, ok))
		}
	}
	return o
}

func observeDefinition(d *catalog.Definition) definition {
	o := definition{
		Meta:      d.Meta,
		Addresses: d.Base.Addresses.Slice(), ExportTo: d.ExportTo.Slice(), SubjectAltNames: d.SubjectAltNames.Slice(), ByCluster: map[string][]string{}, Clusters: map[string]bool{}, Brought: map[string]string{}, Resolutions: map[uint32]model.Resolution{},
		Location: d.Location, Traffic: d.Traffic, Resolution: d.Resolution, Ports: slices.Clone(d.Ports), Rank: d.Rank,
		Records: inUTC(d.Records), Conflicts: slices.Clone(d.Conflicts),
	}
	o.Meta.Created = o.Meta.Created.UTC()
	for _, c := range append([]catalog.ClusterAddresses{d.Base}, d.ByCluster...) {
		o.Clusters[c.Cluster] = c.Cluster != ""
	}
	for _, port := range d.Ports {
		o.Resolutions[port.Number] = d.ResolutionAt(port.Number)
	}
	for _, cluster := range clusters {
		for address := range d.OwnAddressesIn(cluster) {
			if source := d.StandingAt(cluster, address).Source; source != d.Source {
				o.Brought[cluster+" "+address] = source
			}
		}
		list, foreign := d.AddressesIn(cluster)
		if o.ByCluster[cluster] = list.Slice(); foreign {
			o.ByCluster[cluster] = append(list.Slice(), "foreign")
		}
	}
	return o
}

func observePort(e *catalog.Endpoints) portView {
	v := portView{EndpointCounts: e.EndpointCounts}
	for endpoint, speaks := range e.Claims() {
		if speaks {
			v.Places = append(v.Places, place{Address: endpoint.ID(0).Address, Port: endpoint.Port, Network: endpoint.Network})
		}
		last := len(v.Places) - 1
		v.Places[last].Claims = append(v.Places[last].Claims, claim{endpoint.Record, endpoint.Endpoint, endpoint.Owner(), endpoint.Path})
	}
	at := 0
	for endpoint := range e.All() {
		if at == len(v.Places) || endpoint.Record != v.Places[at].Claims[0].Record || endpoint.Port != v.Places[at].Port || endpoint.Network != v.Places[at].Network {
			panic(fmt.Sprintf("All yields %s where Claims yields %+v", endpoint.Record, v.Places))
		}
		v.Places[at].Health = endpoint.Health
		at++
	}
	observeWeights(e)
	observeAccounts(e)
	observeAddresses(e)
	if at != len(v.Places) {
		panic(fmt.Sprintf("All yields %d endpoints, Claims %+v", at, v.Places))
	}
	return v
}

// observeAccounts holds the tally of accounts, which is kept with each change, to the
// endpoints themselves.
func observeAccounts(e *catalog.Endpoints) {
	want := map[string]bool{}
	for endpoint := range e.All() {
		if endpoint.ServiceAccount != "" {
			want[endpoint.ServiceAccount] = true
		}
	}
	if got := slices.Collect(e.Accounts()); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		panic(fmt.Sprintf("the accounts are %q, want %v", got, want))
	}
}

// observeAddresses holds what is said of each address to all that is said.
func observeAddresses(e *catalog.Endpoints) {
	want := map[string][]catalog.Endpoint{"absent": nil}
	for endpoint := range e.All() {
		want[endpoint.ID(0).Address] = append(want[endpoint.ID(0).Address], endpoint)
	}
	for address, of := range want {
		same := func(a, b catalog.Endpoint) bool {
			return a.ID(0) == b.ID(0) && a.Record == b.Record && a.Equal(b.Endpoint)
		}
		if got := slices.Collect(e.At(address)); !slices.EqualFunc(got, of, same) {
			panic(fmt.Sprintf("At yields %v of %s, want %v", got, address, of))
		}
	}
}

// observeWeights holds the tally of weights, which is kept with each change, to
// the endpoints themselves.
func observeWeights(e *catalog.Endpoints) {
	want, weighted, uneven := map[model.Locality][]uint32{}, false, false
	for endpoint := range e.All() {
		weight := max(endpoint.Weight, 1)
		weighted = weighted || weight > 1
		if of := want[endpoint.Locality]; !slices.Contains(of, weight) {
			want[endpoint.Locality] = append(of, weight)
			uneven = uneven || len(of) > 0
		}
	}
	if !weighted {
		clear(want)
	}
	got := map[model.Locality][]uint32{}
	for locality, weight := range e.Weights() {
		got[locality] = append(got[locality], weight)
	}
	for _, of := range want {
		slices.Sort(of)
	}
	if uneven != e.Uneven() || !maps.EqualFunc(got, want, slices.Equal[[]uint32]) {
		panic(fmt.Sprintf("the tally of weights is %v, uneven %t, of %v", got, e.Uneven(), want))
	}
}
