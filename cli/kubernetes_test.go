package cli_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
)

// theAPI is the key under which a script keeps its API server.
type theAPI struct{}

// kubernetes runs an API server that has what a file of manifests says, and
// writes the kubeconfig that leads to it.
func kubernetes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: kubernetes KUBECONFIG MANIFESTS")
	}
	api := kubeapi.New()
	ts.Defer(api.Close)
	ts.Value(theAPI{}).(*cluster).Server = api
	for text := range strings.SplitSeq(ts.ReadFile(args[1]), "---\n") {
		var o kubeapi.Object
		ts.Check(yaml.Unmarshal([]byte(text), &o))
		metadata, _ := o["metadata"].(kubeapi.Object)
		api.Put(fmt.Sprintf("%v/namespaces/%v/serviceentries/%v", o["apiVersion"], metadata["namespace"], metadata["name"]), o)
	}
	kubeconfig := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: t, cluster: {server: %q}}]\n"+
		"contexts: [{name: t, context: {cluster: t}}]\ncurrent-context: t\n", api.URL())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(kubeconfig), 0o600))
}

// untouched checks that nothing was written to the script's API server.
func untouched(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: untouched")
	}
	if writes := ts.Value(theAPI{}).(*cluster).Writes(); len(writes) > 0 {
		ts.Fatalf("it wrote: %v", writes)
	}
}

// cluster is the API server that a script may have.
type cluster struct{ *kubeapi.Server }

// forbid has the script's API server say that a verb is not allowed.
func forbid(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: forbid VERB")
	}
	ts.Value(theAPI{}).(*cluster).Forbid(func(verb, _, _ string) bool { return verb == args[0] })
}
