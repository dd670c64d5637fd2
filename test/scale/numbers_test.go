package scale

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sample is a set of measurements.
type sample []float64

// quantile returns the smallest value that at least the share q do not exceed.
func (s sample) quantile(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

func (s sample) median() float64 { return s.quantile(0.5) }

func (s sample) mean() (mean float64) {
	for _, v := range s {
		mean += v / float64(len(s))
	}
	return mean
}

const mib = 1 << 20

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func allMs(list []time.Duration) sample {
	s := make(sample, len(list))
	for i, d := range list {
		s[i] = ms(d)
	}
	return s
}

// histogram is a Prometheus histogram's count by upper bound.
type histogram struct {
	bounds []float64
	counts []float64 // of what is in the bucket or one before
}

// since is the histogram of what was observed between two scrapes.
func (m metrics) since(before metrics, name string) histogram {
	var h histogram
	byBound := map[float64]float64{}
	for series, value := range m.Metrics {
		_, rest, bucket := strings.Cut(series, `le="`)
		if !bucket || !strings.HasPrefix(series, name+"_bucket{") {
			continue
		}
		text, _, _ := strings.Cut(rest, `"`)
		bound, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		byBound[bound] += value - before.Metrics[series]
	}
	for bound := range byBound {
		h.bounds = append(h.bounds, bound)
	}
	slices.Sort(h.bounds)
	for _, bound := range h.bounds {
		h.counts = append(h.counts, byBound[bound])
	}
	return h
}

// mean is the mean of what a histogram observed between two scrapes.
func (m metrics) mean(before metrics, name string) float64 {
	return (m.Sum(name+"_sum") - before.Sum(name+"_sum")) / (m.Sum(name+"_count") - before.Sum(name+"_count"))
}

func (h histogram) total() float64 { return h.counts[len(h.counts)-1] }

// quantile interpolates within the bucket, as Prometheus does.
func (h histogram) quantile(q float64) float64 {
	rank := q * h.total()
	below, from := 0.0, 0.0
	for i, bound := range h.bounds {
		if h.counts[i] >= rank && h.counts[i] > below {
			if math.IsInf(bound, 1) {
				return from
			}
			return from + (bound-from)*(rank-below)/(h.counts[i]-below)
		}
		below, from = h.counts[i], bound
	}
	return from
}
