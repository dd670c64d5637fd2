package envoy

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/golden"
)

// besideIstiod are transcripts of a ServiceEntry with the clusters that istiod makes
// of it and those that Isthmus makes of it, for an Envoy with certain addresses. A
// real istiod writes its part: see TestClustersOfIstiod in test/istio.
const besideIstiod = "testdata/istiod/*.txtar"

// TestClustersBesideIstiod holds the clusters for Envoys against these transcripts.
func TestClustersBesideIstiod(t *testing.T) {
	t.Parallel()
	golden.RunFiles(t, besideIstiod, func(t *testing.T, in *txtar.Archive) *txtar.Archive {
		t.Helper()
		out := &txtar.Archive{Comment: in.Comment, Files: slices.Clone(in.Files)}
		for i, f := range in.Files {
			if who, ok := strings.CutPrefix(f.Name, "isthmus@"); ok {
				out.Files[i].Data = nil
				for _, body := range clustersFor(t, in, who, names.DNSCluster) {
					out.Files[i].Data = append(out.Files[i].Data, byField(t, body)...)
				}
			}
		}
		return out
	})
}

func part(in *txtar.Archive, name string) []byte {
	for _, f := range in.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// clustersFor are the clusters that an Envoy with an extension gets for the ServiceEntry
// of a transcript, under its settings. Who it is is ADDRESSES or ADDRESSES@LOCALITY.
func clustersFor(t *testing.T, in *txtar.Archive, who, extension string) (bodies [][]byte) {
	t.Helper()
	var events []model.Event
	for object := range istio.Read(part(in, "entry.yaml")) {
		if !object.Valid() {
			t.Fatalf("%s is invalid: %v", object.String(), object.Problems)
		}
		listed := object.Listed("entry.yaml")
		for _, r := range append(listed.Owned, listed.Record) {
			events = append(events, model.Upsert{Record: r})
		}
	}
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, events)
	s := NewTranslator()
	if text := part(in, "settings.json"); text != nil {
		if err := json.Unmarshal(text, s); err != nil {
			t.Fatal(err)
		}
	}
	w := worldUnder(s.Prepare(), builder.Snapshot(), true, "istio-system", nil)
	addresses, locality, _ := strings.Cut(who, "@")
	v := w.View(ClusterType, world.Client{
		Kind: reach.KindEnvoy, Namespace: "shop", Addresses: strings.Split(addresses, ","), Extensions: []string{extension}, Locality: localityNamed(locality),
	})
	for _, name := range slices.Sorted(w.Names(v, ClusterType)) { // as those of istiod are
		subject, _ := w.Find(v, ClusterType, name)
		bodies = append(bodies, subject.Encode().Joined().Body)
	}
	return bodies
}

// localityNamed reads REGION/ZONE/SUBZONE.
func localityNamed(name string) (at model.Locality) {
	if parts := strings.Split(name, "/"); len(parts) == 3 {
		at = model.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
	}
	return at
}

func byField(t *testing.T, body []byte) []byte {
	t.Helper()
	object, err := protojson.Marshal(message(t, body))
	if err != nil {
		t.Fatal(err)
	}
	fields, err := golden.Fields(object)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// difference is something in which clusters differ from istiod's on purpose.
type difference struct {
	what, why string
	adopt     func(c object) bool // applies it to istiod's cluster, and reports whether it did
}

type object = map[string]any

var differences = []difference{
	{"typedDnsResolverConfig", "which resolver asks which servers is for the Envoy's bootstrap to say, and this would overrule it", without("typedDnsResolverConfig")},
	{"metadata of endpoints", "it is for Istio's own filters", withoutWorkloads},
	{"the rule in the metadata", "there is no rule: the configuration says it", withoutRule},
	{"order of localities", "the nearest are written first: an Envoy keeps the endpoints of each priority in a list of their own, in which the order is istiod's", nearestFirst},
	{"updateMergeWindow", "workers that follow ejections a second late go on with endpoints that fail", followingSoon},
	{"alpn_override", "it is for a filter of Istio's own", withoutOverride},
	{"source of secrets", "they come from Isthmus, and from Istio's agent there", secretsOverADS},
	{"name of the server", "who answers is the one that is configured, or the host, of TCP as well and whatever host a request names", demandingServer},
	{"typed names", "those without a type match names of any kind, and are deprecated", withTypedNames},
}

// ofDNSCluster is besides what Envoys since [names.DNSCluster] are given.
var ofDNSCluster = difference{"settings of DNS", "as fields of the cluster they are deprecated: Envoy warns of each", asDNSCluster}

// ofBothFamilies is a further difference, in the clusters of Envoys with addresses of both families.
var ofBothFamilies = difference{"family of names", "istiod's depends on a switch of its own, ISTIO_DUAL_STACK, without which names with IPv6 alone are not found", preferringIPv4}

func preferringIPv4(c object) bool {
	if c["dnsLookupFamily"] != "V4_ONLY" {
		return false
	}
	c["dnsLookupFamily"] = "V4_PREFERRED"
	return true
}

func without(field string) func(object) bool {
	return func(c object) bool {
		_, found := c[field]
		delete(c, field)
		return found
	}
}

func withoutWorkloads(c object) (found bool) {
	assignment, _ := c["loadAssignment"].(object)
	groups, _ := assignment["endpoints"].([]any)
	for _, group := range groups {
		for _, e := range group.(object)["lbEndpoints"].([]any) {
			found = without("metadata")(e.(object)) || found
		}
	}
	return found
}

// ofIstio is the metadata of a cluster that Istio's filters read.
func ofIstio(c object) object {
	metadata, _ := c["metadata"].(object)
	filters, _ := metadata["filterMetadata"].(object)
	of, _ := filters["istio"].(object)
	return of
}

func withoutRule(c object) bool {
	rule, subset := without("config")(ofIstio(c)), without("subset")(ofIstio(c))
	return rule || subset
}

func nearestFirst(c object) bool {
	assignment, _ := c["loadAssignment"].(object)
	groups, _ := assignment["endpoints"].([]any)
	nearer := func(a, b any) int {
		first, _ := a.(object)["priority"].(float64)
		second, _ := b.(object)["priority"].(float64)
		return cmp.Compare(first, second)
	}
	sorted := slices.IsSortedFunc(groups, nearer)
	slices.SortStableFunc(groups, nearer)
	return !sorted
}

func followingSoon(c object) bool {
	if c["outlierDetection"] == nil {
		return false
	}
	c["commonLbConfig"].(object)["updateMergeWindow"] = "0.100s"
	return true
}

// asDNSCluster moves the settings to where newer Envoys want them.
func asDNSCluster(c object) bool {
	if c["type"] != "STRICT_DNS" && c["type"] != "LOGICAL_DNS" {
		return false
	}
	config := object{"@type": "type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster"}
	for _, field := range []string{"dnsRefreshRate", "dnsJitter", "respectDnsTtl", "dnsLookupFamily"} {
		config[field] = c[field]
		delete(c, field)
	}
	if c["type"] == "LOGICAL_DNS" {
		config["allAddressesInSingleEndpoint"] = true
	}
	delete(c, "type")
	c["clusterType"] = object{"name": "envoy.cluster.dns", "typedConfig": config}
	return true
}

// TestClustersAreIstiods compares every field of the clusters for Envoys with
// istiod's, but for what differs on purpose. An Envoy that does not know newer
// types of clusters gets the fields that istiod writes.
func TestClustersAreIstiods(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(besideIstiod)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for extension, expected := range map[string][]difference{
		names.DNSCluster: append([]difference{ofDNSCluster}, differences...),
		"none":           differences,
	} {
		used := map[string]bool{}
		for _, path := range paths {
			in, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range in.Files {
				who, ok := strings.CutPrefix(f.Name, "istiod@")
				if !ok {
					continue
				}
				want := objects(t, f.Data)
				for _, c := range want {
					if strings.Contains(who, ",") {
						used[ofBothFamilies.what] = ofBothFamilies.adopt(c) || used[ofBothFamilies.what]
					}
					for _, d := range expected {
						used[d.what] = d.adopt(c) || used[d.what]
					}
				}
				var got []object
				for _, body := range clustersFor(t, in, who, extension) {
					got = append(got, objects(t, byField(t, body))...)
				}
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Errorf("%s, %s, extension %s (-istiod +isthmus):\n%s", path, f.Name, extension, diff)
				}
			}
		}
		for _, d := range append([]difference{ofBothFamilies}, expected...) {
			if !used[d.what] {
				t.Errorf("%s: istiod has nothing of that kind, so it is no difference any more", d.what)
			}
		}
	}
}

// objects reads JSON objects that follow each other.
func objects(t *testing.T, text []byte) (list []object) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(string(text))); d.More(); {
		var o object
		if err := d.Decode(&o); err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
	return list
}
