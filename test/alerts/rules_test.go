package alerts_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

const rulesFile = "../../deploy/helm/isthmus/files/alerts.yaml"

func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation)
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() || len(groups.Groups) != 1 {
		t.Fatalf("%s is no rules file of one group", rulesFile)
	}
	return groups.Groups[0].Rules
}

const (
	step   = time.Minute // between two scrapes, and between two evaluations
	length = 3 * time.Hour
)

// target is the labels that Prometheus adds to the series of a scrape.
var target = labels.FromStrings("namespace", "mesh", "job", "isthmus", "instance", "10.0.0.1:8080")

// firing returns the alerts that fire while every scrape from start on is the same. Rates
// are what a series grows by from one scrape to the next.
func firing(t *testing.T, s scrape, rates map[string]float64, start time.Time) (names []string) {
	t.Helper()
	stored := storedSeries(t, s, rates, start)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute})
	for _, rule := range rules(t) {
		q, err := engine.NewRangeQuery(t.Context(), stored, nil, rule.Expr, start, start.Add(length), step)
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		result := q.Exec(t.Context())
		if result.Err != nil {
			t.Fatalf("%s: %v", rule.Alert, result.Err)
		}
		matrix, err := result.Matrix()
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		if slices.ContainsFunc(matrix, func(found promql.Series) bool { return lasts(found, time.Duration(rule.For)) }) {
			names = append(names, rule.Alert)
		}
		q.Close()
	}
	return names
}

// lasts reports whether a series is there for a time without a gap.
func lasts(found promql.Series, atLeast time.Duration) bool {
	begin := int64(0)
	for i, point := range found.Floats {
		if i == 0 || point.T-found.Floats[i-1].T > step.Milliseconds() {
			begin = point.T
		}
		if point.T-begin >= atLeast.Milliseconds() {
			return true
		}
	}
	return false
}

type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// table is a storage of series.
type table []storage.Series

func storedSeries(t *testing.T, s scrape, rates map[string]float64, start time.Time) storage.Queryable {
	t.Helper()
	for name := range rates {
		if _, there := s[name]; !there {
			t.Fatalf("a scrape does not have %s", name)
		}
	}
	var all table
	for name, value := range s {
		ls, err := parser.ParseMetric(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b := labels.NewBuilder(ls)
		target.Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
		var samples []chunks.Sample
		for at := start; !at.After(start.Add(length)); at = at.Add(step) {
			samples = append(samples, sample{at.UnixMilli(), value})
			value += rates[name]
		}
		all = append(all, storage.NewListSeries(b.Labels(), samples))
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: all.selected}}
}

func (a table) selected(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range a {
		ls := s.Labels()
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(ls.Get(m.Name)) }) {
			found = append(found, s)
		}
	}
	return &seriesSet{found, -1}
}

// seriesSet is a list of series as the engine reads it.
type seriesSet struct {
	list []storage.Series
	at   int
}

func (s *seriesSet) Next() bool                      { s.at++; return s.at < len(s.list) }
func (s *seriesSet) At() storage.Series              { return s.list[s.at] }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }
