package probe_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

func TestSeriesOfAMetricAreSummedUp(t *testing.T) {
	t.Parallel()
	m := probe.ParseMetrics(t, []byte("# HELP calls All of them.\n\ncalls{by=\"a b\"} 2\ncalls 0.5\ncalls_total 7\nratio NaN\n"))
	if len(m) != 4 || m[`calls{by="a b"}`] != 2 || m.Sum("calls") != 2.5 {
		t.Errorf("read %v with a sum of %v, want four series and 2.5", m, m.Sum("calls"))
	}
	if m := probe.ParseMetrics(t, nil); len(m) != 0 {
		t.Errorf("read %v from nothing", m)
	}
}

func TestProcessShowsWhatItUses(t *testing.T) {
	t.Parallel()
	before := probe.CPU(t, os.Getpid())
	until.NoError(t, time.Millisecond, "more processor time", func() error {
		if probe.CPU(t, os.Getpid()) == before {
			return errors.New("it stands still")
		}
		return nil
	})
	if now, most := probe.Memory(t, os.Getpid(), "VmRSS"), probe.Memory(t, os.Getpid(), "VmHWM"); now < 1<<20 || most < 1<<20 {
		t.Errorf("%v bytes in memory, %v at most: too few for a Go program", now, most)
	}
}
