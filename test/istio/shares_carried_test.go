package istio_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// TestCarriedRuleMakesSharesExact has an istiod take a host with shares over MCP-over-xDS. Its
// default balancer is far off the share of 10 %, until the DestinationRule that Isthmus prints is
// saved in a folder from which Isthmus carries such rules: then every share is exact. No call fails.
func TestCarriedRuleMakesSharesExact(t *testing.T) {
	t.Parallel()
	c := startCarried(t)
	c.AwaitWeights(10)
	got := c.Calls(sharedCalls)
	t.Logf("without a rule: of 10 %% asked, %.1f %% of %d calls", got, sharedCalls)
	if c.near(got, 10) == nil {
		t.Error("istiod needs no rule any more: correct the documentation")
	}
	c.Save(c.Print())
	for _, percent := range []int{10, 50, 98} {
		c.Ask(percent)
		c.AwaitWeights(percent)
		await(t, "Envoy to obey the weights exactly", func() error { return c.near(c.Calls(300), percent) })
		got = c.Calls(sharedCalls)
		t.Logf("of %d %% asked, %.1f %% of %d calls", percent, got, sharedCalls)
		if err := c.near(got, percent); err != nil {
			t.Error(err)
		}
	}
}

// carried is a host that two registries have, and a folder of rules, from an Isthmus to which an
// istiod is connected.
type carried struct {
	*divided

	rules   string // folder
	address string // of the Isthmus
}

// startCarried starts them with an empty folder, and a share of 10 %.
func startCarried(t *testing.T) *carried {
	t.Helper()
	c := &carried{divided: newDivided(t, connect(t, shared), "carried"), rules: t.TempDir(), address: "127.0.0.1:" + freePort(t)}
	c.isthmus = serveConfig(t, c.namespace, c.config(10))
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	defer cancel()
	i, err := shared.StartIstiodWith(ctx, fmt.Sprintf("configSources: [{address: \"xds://%s\"}, {address: \"k8s://\"}]\n", c.address))
	if err != nil {
		t.Fatal(err)
	}
	c.Follow(i)
	t.Cleanup(http.DefaultClient.CloseIdleConnections) // of those who read counters
	return c
}

// Ask changes the share of the second registry.
func (c *carried) Ask(percent int) { c.Configure(c.config(percent)) }

func (c *carried) config(percent int) string {
	return c.divide(percent, fmt.Sprintf("- {name: rules, file: {path: %s, carry: [DestinationRule]}}\n", c.rules)) +
		fmt.Sprintf("outputs: {xds: {listen: %q}}\n", c.address)
}

// Print returns the rule that Isthmus prints for the host.
func (c *carried) Print() []byte {
	c.api.t.Helper()
	text, err := proxy.Print(c.api.t.Context(), program, "services", c.host, "--destination-rule", "--admin", c.admin)
	if err != nil {
		c.api.t.Fatal(err)
	}
	return text
}

// Save writes a file of rules, at once.
func (c *carried) Save(text []byte) {
	c.api.t.Helper()
	draft := filepath.Join(c.api.t.TempDir(), "rule.yaml")
	err := os.WriteFile(draft, text, 0o600)
	if err == nil {
		err = os.Rename(draft, filepath.Join(c.rules, "rule.yaml"))
	}
	if err != nil {
		c.api.t.Fatal(err)
	}
}
