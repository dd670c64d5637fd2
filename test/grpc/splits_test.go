package grpc_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
	"github.com/isthmus-mesh/isthmus/test/testkit/calls"
)

// TestSplitsDecideTheShares divides the calls to each of several hosts between two versions.
// The second one has more endpoints, which are heavier and elsewhere. While a client calls all
// hosts, their shares change twice, an endpoint of one version comes, and one of the other goes.
// No call fails, and the shares are as asked for before and afterwards.
func TestSplitsDecideTheShares(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		d := divide(t)
		first := map[string]int{"old-1": 1, "new-1": 10, "new-2": 10, "new-3": 30}
		more := map[string]int{"old-1": 1, "old-2": 3, "new-1": 10, "new-2": 10, "new-3": 30}
		last := map[string]int{"old-1": 1, "old-2": 3, "new-2": 10, "new-3": 30}
		d.Ask(10, 1, 50, 98)
		d.Weigh(first)
		d.Start()
		client := dialEvery(t, 2*quick, impl, d.isthmus, d.targets()...)
		client.awaitAllShares(splitCalls, d.shares(first))
		for _, step := range []struct {
			weights map[string]int
			percent []int
		}{{more, []int{50, 98, 10, 1}}, {last, []int{98, 50, 1, 10}}} {
			d.Ask(step.percent...)
			d.Weigh(step.weights)
			client.AwaitCalls(d.targets()[0], 100)
		}
		client.awaitAllShares(splitCalls, d.shares(last))
		d.backends["new-1"].Stop()
		client.AwaitCalls(d.targets()[0], 100)
		for _, target := range d.targets() {
			client.MustNotHaveFailed(target)
		}
	})
}

// splitCalls is the number of calls to a host by which its shares are measured.
const splitCalls = 2000

// divided is an Isthmus with hosts of the same endpoints and different shares.
type divided struct {
	*isthmus

	backends map[string]*calls.Backend
	percent  []int // of the calls to each host, for the new version
}

func divide(t *testing.T) *divided {
	t.Helper()
	d := &divided{isthmus: newIsthmus(t), backends: map[string]*calls.Backend{}}
	for _, b := range startBackends(t, "old-1", "old-2", "new-1", "new-2", "new-3") {
		d.backends[b.Name] = b
	}
	return d
}

// Ask changes the share that the new version has of the calls to each host.
func (d *divided) Ask(percent ...int) {
	d.t.Helper()
	d.percent = percent
	var splits []string
	for n, p := range percent {
		splits = append(splits, fmt.Sprintf("{host: %s, namespace: shop, backends: [{labels: {version: old}, weight: %d}, {labels: {version: new}, weight: %d}]}", splitHost(n), 100-p, p))
	}
	d.splits = strings.Join(splits, ", ")
	d.configure("")
}

// Weigh replaces the endpoints of all hosts, which have weights by name.
func (d *divided) Weigh(weights map[string]int) {
	d.t.Helper()
	var endpoints []endpoint
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		zone := map[string]string{"old": "eu/east", "new": "us/west"}[versionOf(name)]
		endpoints = append(endpoints, endpoint{d.backends[name], weights[name], zone, versionOf(name)})
	}
	for n := range d.percent {
		d.WriteEndpoints(splitHost(n), endpoints...)
	}
}

func splitHost(n int) string { return fmt.Sprintf("divided-%d.example.com", n) }

// targets are the hosts, as a client calls them.
func (d *divided) targets() (list []string) {
	for n := range d.percent {
		list = append(list, splitHost(n)+":80")
	}
	return list
}

// shares are those that the backends should have of the calls to each target.
func (d *divided) shares(weights map[string]int) map[string]shares {
	sums := map[string]int{}
	for name, weight := range weights {
		sums[versionOf(name)] += weight
	}
	all := map[string]shares{}
	for n, target := range d.targets() {
		percent := map[string]int{"old": 100 - d.percent[n], "new": d.percent[n]}
		all[target] = shares{}
		for name, weight := range weights {
			version := versionOf(name)
			all[target][name] = float64(percent[version]*weight) / float64(sums[version])
		}
	}
	return all
}
