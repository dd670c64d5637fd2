package alerts_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// scrape is the series of one scrape: values by series, as "name{label="value",…}".
type scrape map[string]float64

// get scrapes an admin address, and returns the text.
func get(address string) (string, error) {
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET /metrics is answered %s", answer.Status)
	}
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// parse reads the text of a scrape.
func parse(text string) (scrape, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	s := scrape{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			s.add(name, m)
		}
	}
	return s, nil
}

func (s scrape) add(name string, m *dto.Metric) {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	switch h := m.GetHistogram(); {
	case h != nil:
		for _, b := range h.GetBucket() {
			bucket := maps.Clone(labels)
			bucket["le"] = fmt.Sprint(b.GetUpperBound())
			s[series(name+"_bucket", bucket)] = float64(b.GetCumulativeCount())
		}
		labels["le"] = "+Inf"
		s[series(name+"_bucket", labels)] = float64(h.GetSampleCount())
	default: // the others are nil, and 0
		s[series(name, labels)] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
	}
}

func series(name string, labels map[string]string) string {
	var b strings.Builder
	b.WriteString(name + "{")
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%s=%q,", label, labels[label])
	}
	return strings.TrimSuffix(b.String(), ",") + "}"
}

// await scrapes until a series has a value, and returns that scrape.
func await(t *testing.T, address, series string, want float64) (s scrape) {
	t.Helper()
	until.NoError(t, 10*time.Millisecond, fmt.Sprintf("%s = %v", series, want), func() error {
		text, err := get(address)
		if err != nil {
			return err
		}
		if s, err = parse(text); err != nil {
			return err
		}
		if got, there := s[series]; !there || got != want {
			return fmt.Errorf("it is %v, and there: %t", got, there)
		}
		return nil
	})
	return s
}
