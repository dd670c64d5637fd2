package istio

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/istio/rights"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
)

// rightsWith returns what is missing to write in some namespaces, if an API server
// forbids something.
func rightsWith(t *testing.T, c Config, forbid func(verb, resource, namespace string) bool, namespaces ...string) output.Rights {
	t.Helper()
	api := newAPI(t)
	api.Forbid(forbid)
	w, err := newWriter(c, Options{Instance: "test"}, &rest.Config{Host: api.URL()})
	if err != nil {
		t.Fatal(err)
	}
	found := w.Rights(t.Context(), namespaces)
	if writes := api.Writes(); len(writes) > 0 {
		t.Errorf("it wrote: %v", writes)
	}
	return found
}

// What is missing is named one by one, and the manifest has whole roles.
func TestMissingRightsAreNamed(t *testing.T) {
	t.Parallel()
	full := DefaultConfig()
	full.Sidecars = true
	const writes = "create, update, patch, delete serviceentries.networking.istio.io in namespace "
	for name, test := range map[string]struct {
		config     Config
		forbid     func(verb, resource, namespace string) bool
		namespaces []string
		missing    []string
		manifest   []string // parts that it has
		lacks      string   // and one that it has not
	}{
		"nothing": {config: full, forbid: nil},
		"everything": {
			config: full, forbid: func(string, string, string) bool { return true }, namespaces: []string{"shop"},
			missing: []string{
				"get, list, watch serviceentries.networking.istio.io in all namespaces",
				"create, update, patch, delete serviceentries.networking.istio.io in all namespaces",
				"get, list, watch sidecars.networking.istio.io in all namespaces",
				"create, update, patch, delete sidecars.networking.istio.io in all namespaces",
				"get, create, update leases.coordination.k8s.io isthmus in namespace istio-system",
			},
			manifest: []string{
				"kind: ClusterRole\n", "resources: [serviceentries, sidecars]\n  verbs: [get, list, watch, create, update, patch, delete]\n",
				"kind: ClusterRoleBinding\n", "kind: Role\nmetadata: {name: isthmus, namespace: istio-system}", "name: \"" + kubeapi.User + `"}`,
			},
		},
		"objects of endpoints": {
			config: Config{Endpoints: translate.Auto}, forbid: func(verb, resource, _ string) bool { return verb == "create" && resource == "workloadentries" },
			missing:  []string{"create workloadentries.networking.istio.io in all namespaces"},
			manifest: []string{"resources: [serviceentries, workloadentries]\n"},
		},
		"rules for shares": {
			config: Config{Shares: translate.SharesAsRules}, forbid: func(verb, resource, _ string) bool { return verb == "list" && resource == "destinationrules" },
			missing:  []string{"list destinationrules.networking.istio.io in all namespaces"},
			manifest: []string{"resources: [serviceentries, destinationrules]\n"},
		},
		"objects of endpoints, which are not written": {
			config: quick(), forbid: func(_, resource, _ string) bool { return resource == "workloadentries" },
		},
		"one verb": {
			config: DefaultConfig(), forbid: func(verb, resource, _ string) bool { return verb == "patch" && resource == "serviceentries" },
			namespaces: []string{"pay", "shop"},
			missing:    []string{"patch serviceentries.networking.istio.io in all namespaces"},
			manifest:   []string{"verbs: [get, list, watch, create, update, patch, delete]"}, lacks: "leases",
		},
		"one namespace of two": {
			config: DefaultConfig(), namespaces: []string{"pay", "shop"},
			forbid: func(verb, resource, namespace string) bool {
				return resource == "serviceentries" && slices.Contains(rights.WriteVerbs(), verb) && namespace != "pay"
			},
			missing:  []string{writes + "shop"},
			manifest: []string{"kind: Role\nmetadata: {name: isthmus, namespace: shop}"}, lacks: "ClusterRole",
		},
		"no lease, and none wanted": {
			config: quick(), forbid: func(_, resource, _ string) bool { return resource == "leases" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := rightsWith(t, test.config, test.forbid, test.namespaces...)
			var missing []string
			for _, right := range found.Missing {
				missing = append(missing, right.String())
			}
			if !slices.Equal(missing, test.missing) || found.Reason != "" || (found.Manifest == "") != (len(missing) == 0) {
				t.Errorf("missing are %q (%s), and the manifest is\n%s", missing, found.Reason, found.Manifest)
			}
			for _, part := range test.manifest {
				if !strings.Contains(found.Manifest, part) {
					t.Errorf("%q is not in\n%s", part, found.Manifest)
				}
			}
			if test.lacks != "" && strings.Contains(found.Manifest, test.lacks) {
				t.Errorf("%q is in\n%s", test.lacks, found.Manifest)
			}
		})
	}
}

// An API server that does not answer is no lack of rights.
func TestUnknownRightsAreNotMissing(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.Down(true)
	w, err := newWriter(quick(), Options{Instance: "test"}, &rest.Config{Host: api.URL()})
	if err != nil {
		t.Fatal(err)
	}
	if found := w.Rights(t.Context(), nil); len(found.Missing) > 0 || !strings.Contains(found.Reason, "cannot be read: the API server cannot be reached") {
		t.Errorf("rights are %+v", found)
	}
}
