package scale_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSmallPace is [BenchmarkEnvoy] at a size that takes seconds. Changes of
// instances, twenty a second, are pushes of endpoints and nothing else.
func TestSmallPace(t *testing.T) {
	f := measurePace(t, size{services: 20, instances: 200, changes: 60, pace: 50 * time.Millisecond})
	t.Log(f)
	others := f["cds"] + f["lds"] + f["rds"]
	if f["connections"] > 1 { // which bring everything, and were not pushed
		others = 0
	}
	if f["eds"] == 0 || f["for-service"]+others != 0 {
		t.Errorf("changes of instances should be pushed as endpoints: %v", f)
	}
	if f["writes/change"] > 1 {
		t.Errorf("a change led to %v writes", f["writes/change"])
	}
}

// TestSmallScopes is [BenchmarkScope] likewise. What a proxy may not see costs it
// nothing.
func TestSmallScopes(t *testing.T) {
	const services, uses = 250, 2
	rows := measureScopes(t, size{services: services, instances: services, consumers: 10, uses: uses, changes: 10, pace: 50 * time.Millisecond, rounds: 1})
	own := map[string]int{"unscoped": services, "exportTo": (services + apps - 1) / apps, "sidecars": uses}
	rest := rows["sidecars"]["clusters"] - 2*uses // that an Envoy has of itself
	for way, count := range own {
		f := rows[way]
		t.Log(way, f)
		if f["clusters"] != float64(2*count)+rest {
			t.Errorf("%s: Envoy has %v clusters, and should have two for each of %d services beside %v", way, f["clusters"], count, rest)
		}
		if f["change-for-service"] != 0 || f["change-eds"] == 0 {
			t.Errorf("%s: changes of instances should be pushed as endpoints: %v", way, f)
		}
	}
	if rest < 0 || rest > 5 {
		t.Errorf("Envoy has %v clusters beside those of the services", rest)
	}
	for _, way := range []string{"exportTo", "sidecars"} {
		if all, few := rows["unscoped"]["change-eds"], rows[way]["change-eds"]; few >= all {
			t.Errorf("%s: istiod pushed %v times what is seen, and %v times of everything", way, few, all)
		}
	}
}

// TestSmallBeside is [BenchmarkBeside] likewise: each Envoy calls the new endpoint after
// each change, no call fails, and nothing is rejected.
func TestSmallBeside(t *testing.T) {
	const changes, rounds = 3, 2
	rows := measureBeside(t, size{services: 5, instances: 20, changes: changes, pace: 50 * time.Millisecond, rounds: rounds}, 2)
	for _, of := range []string{"isthmus", "istiod"} {
		t.Log(of, rows[of])
		if got := rows[of]["changes"]; got != changes*rounds {
			t.Errorf("%s: %v changes were measured, not %d", of, got, changes*rounds)
		}
	}
}

// TestSmallHeld is [BenchmarkHeld] likewise: an Envoy has the clusters that it may see,
// and a few of its own, and one listener unless it asks for more. An Envoy that sees few
// services has allocated less memory.
func TestSmallHeld(t *testing.T) {
	const services, few, own = 60, 5, 6
	allocated := map[string]map[bool]float64{} // by the way, then for few services or all
	for _, row := range measureHeld(t, size{services: services, instances: services, rounds: 1}, few) {
		t.Log(row.name, row.figures)
		way, seen, _ := strings.Cut(row.name, "/services=")
		if allocated[way] == nil {
			allocated[way] = map[bool]float64{}
		}
		allocated[way][seen == strconv.Itoa(few)] = row.figures["envoy-allocated-MB"]
		want := float64(services)
		if strings.HasSuffix(row.name, fmt.Sprintf("=%d", few)) {
			want = few
		}
		if got := row.figures["clusters"]; got < want || got > want+own {
			t.Errorf("%s: Envoy has %v clusters", row.name, got)
		}
		one := strings.Contains(row.name, "clustersOnly=true")
		if got := row.figures["listeners"]; one != (got == 1) {
			t.Errorf("%s: Envoy has %v listeners", row.name, got)
		}
	}
	for way, mb := range allocated {
		if mb[true] >= mb[false] {
			t.Errorf("%s: Envoy has allocated %.2f MB for %d services and %.2f MB for %d", way, mb[true], few, mb[false], services)
		}
	}
}
