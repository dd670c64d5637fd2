package scale_test

import (
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
