package feature_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// TestMetricsAreThoseOfTheReference compares names, types and labels of what is
// measured with the page that dashboards are written by.
func TestMetricsAreThoseOfTheReference(t *testing.T) {
	t.Parallel()
	_, text, err := startEventful(t).get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	documented, measured := documentedMetrics(t), measuredMetrics(text)
	documented = slices.DeleteFunc(documented, func(metric string) bool {
		return slices.ContainsFunc(conditional, func(prefix string) bool { return strings.HasPrefix(metric, prefix) })
	})
	if diff := cmp.Diff(documented, measured); diff != "" {
		t.Errorf("-documented +measured:\n%s", diff)
	}
}

// conditional metrics are there with TLS or an authority only, or with an output or a source that is not.
var conditional = []string{"isthmus_authority_", "isthmus_certificate_", "isthmus_istio_", "isthmus_mcp_sink_", "isthmus_source_answers_", "isthmus_source_nacks_", "isthmus_source_streams_"}

// documentedMetrics reads the table of the reference: "name type label,label".
func documentedMetrics(t *testing.T) []string {
	t.Helper()
	reference, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(reference)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.HasPrefix(cells[1], " `isthmus_") {
			list = append(list, metric(strings.Trim(cells[1], " `"), strings.TrimSpace(cells[2]), strings.Split(strings.TrimSpace(cells[3]), ", ")))
		}
	}
	slices.Sort(list)
	return list
}

// measuredMetrics reads the same from what Prometheus scrapes.
func measuredMetrics(text string) []string {
	types, labels := map[string]string{}, map[string][]string{}
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); fields[0] == "#" && fields[1] == "TYPE" && strings.HasPrefix(fields[2], "isthmus_") {
			types[fields[2]] = fields[3]
		}
		name, rest, labelled := strings.Cut(line, "{")
		if labelled && !strings.HasSuffix(name, "_bucket") && !strings.HasSuffix(name, "_sum") {
			labels[strings.TrimSuffix(name, "_count")] = labelNames(rest)
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(types)) {
		list = append(list, metric(name, types[name], labels[name]))
	}
	return list
}

// metric is one metric in one line. The order of labels says nothing.
func metric(name, kind string, labels []string) string {
	slices.Sort(labels)
	return strings.TrimSpace(name + " " + kind + " " + strings.Join(labels, ","))
}

// labelNames reads `a="x",b="y"} 1`.
func labelNames(text string) (names []string) {
	for pair := range strings.SplitSeq(text, ",") {
		if name, _, labelled := strings.Cut(pair, `="`); labelled {
			names = append(names, name)
		}
	}
	return names
}

// TestSeriesOfATypeComeWithItsFirstSubscription: a type that no client has asked for has no
// series, and one that a client has asked for has all of them, at 0 too.
func TestSeriesOfATypeComeWithItsFirstSubscription(t *testing.T) {
	t.Parallel()
	files := newRegistry(t, "files")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: []string{"{address: 10.0.0.1}"}})
	isthmus := start(t, files)
	series := func(typeURL string) (list []string) {
		t.Helper()
		_, text, err := isthmus.get("/metrics")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			if name, labels, _ := strings.Cut(line, "{"); strings.Contains(labels, `"`+typeURL+`"`) {
				list = append(list, name)
			}
		}
		return list
	}
	if got := series(xdsclient.EDS); len(got) > 0 {
		t.Errorf("before the first subscription: %q", got)
	}
	client := xdsclient.NewDelta(t, channel(t, isthmus), xdsclient.Config{Node: xdsclient.Node("one", "shop", "envoy")})
	client.Subscribe(xdsclient.EDS, cluster(reviews))
	client.AwaitHeld(xdsclient.EDS, cluster(reviews))
	want := []string{"isthmus_push_bytes_total", "isthmus_push_resources_total", "isthmus_push_responses_total", "isthmus_refusals_total"}
	if diff := cmp.Diff(want, series(xdsclient.EDS)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := series(xdsclient.CDS); len(got) > 0 {
		t.Errorf("of another type: %q", got)
	}
}
