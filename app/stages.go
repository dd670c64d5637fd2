package app

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// stages times a change on its way: seen at the registry, committed, merged,
// sent, accepted.
type stages struct {
	observeToCommit, commitToCatalog prometheus.Observer
	commitToSend, commitToAccept     *prometheus.HistogramVec
}

func newStages(metrics *prometheus.Registry) *stages {
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "isthmus_" + name + "_seconds", Help: help,
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 18), // 0.5 ms to 65 s
		}, labels)
		metrics.MustRegister(h)
		return h
	}
	return &stages{
		histogram("observe_to_commit", "Time from the first sign of a change at the registry to its commit.").WithLabelValues(),
		histogram("commit_to_catalog", "Time from the commit of a change to the snapshot that has it.").WithLabelValues(),
		histogram("commit_to_send", "Time from the commit of a change to its handing over to a client's connection.", "output"),
		histogram("commit_to_accept", "Time from the commit of a change to its acceptance by a client.", "output"),
	}
}

// merged records that a change has reached the catalog.
func (s *stages) merged(c catalog.Change) {
	if c.Committed.IsZero() {
		return // a snapshot of the store, which has no times
	}
	s.commitToCatalog.Observe(time.Since(c.Committed).Seconds())
	if !c.Observed.IsZero() {
		s.observeToCommit.Observe(c.Committed.Sub(c.Observed).Seconds())
	}
}
