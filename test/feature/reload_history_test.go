package feature_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// histories is how many sequences of configurations are tried.
const histories = 8

// version is one version of the file.
type version struct {
	Sources  []string // names, in order
	Folders  []int    // of each
	Broken   bool
	Notified bool // by a hangup; else it is to be noticed
}

var versions = rapid.Custom(func(t *rapid.T) version {
	names := rapid.Permutation([]string{"a", "b", "c", "d"}).Draw(t, "names")
	v := version{Sources: names[:rapid.IntRange(1, len(names)).Draw(t, "size")]}
	for range v.Sources {
		v.Folders = append(v.Folders, rapid.IntRange(0, 2).Draw(t, "folder"))
	}
	v.Broken, v.Notified = rapid.IntRange(0, 3).Draw(t, "broken") == 0, rapid.Bool().Draw(t, "notified")
	return v
})

// Whatever the file said in between: in the end clients hold what they would
// hold if Isthmus had been started with what it says last.
func TestReloadsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	var folders [3]*registry
	for n := range folders {
		folders[n] = newRegistry(t, fmt.Sprint("folder-", n))
		folders[n].Write("shop.yaml",
			at(fmt.Sprintf("own-%d.example", n), "192.0.2.1"),
			service{Host: reviews, Endpoints: []string{fmt.Sprintf("{address: 192.0.2.1, weight: %d}", n+1), fmt.Sprintf("{address: 192.0.2.1%d}", n)}},
			service{Host: ratings, Resolution: []string{"STATIC", "DNS", "NONE"}[n], Endpoints: [][]string{{"{address: 192.0.2.1}"}, {"{address: a.example}"}, nil}[n]})
	}
	entries := func(v version) (list []entry) {
		for i, name := range v.Sources {
			list = append(list, entry{name: name, from: folders[v.Folders[i]]})
		}
		return list
	}
	r := startReloading(t, entry{name: "a", from: folders[0]})
	for seed := range histories {
		history := rapid.SliceOfN(versions, 1, 6).Example(seed)
		for _, v := range history {
			text := configOf(entries(v)...)
			if v.Broken {
				text = strings.Replace(text, "sources:", "source:", 1)
			}
			place(t, r.file, text)
			if v.Notified {
				r.hangup <- syscall.SIGHUP
			}
		}
		last := entries(history[len(history)-1])
		r.Configure(last...)
		fresh := startReloading(t, last...)
		fresh.AwaitSources(last...)
		await(t, "the state of a fresh start", func() error {
			got, want := holds(r.envoy), holds(fresh.envoy)
			if !slices.Equal(got, want) || len(want) == 0 {
				return fmt.Errorf("after %+v\nit holds\n  %s\nand after a fresh start\n  %s", history, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
			}
			return nil
		})
		fresh.envoy.Disconnect()
		fresh.Stop()
	}
	r.envoy.Read(func(s *xdsclient.State) {
		if s.NACKs(xdsclient.CDS) > 0 {
			t.Error("something was rejected")
		}
	})
}
