package feature_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// conditional metrics are there with TLS only, or with an output or a source that is not.
var conditional = []string{"isthmus_certificate_", "isthmus_istio_", "isthmus_mcp_sink_", "isthmus_source_answers_", "isthmus_source_nacks_", "isthmus_source_streams_"}

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
