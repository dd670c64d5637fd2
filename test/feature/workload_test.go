package feature_test

import "testing"

func TestServiceSelectsWorkloadsByLabel(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two", "elsewhere", "ratings")
	files.Write("services.yaml",
		service{Host: reviews, Selector: "{app: reviews}"},
		service{Host: "ratings.shop.example", Selector: "{app: ratings}"})
	files.Write("workloads/one.yaml", workload{Name: "one", Spec: b[0].Endpoint("labels: {app: reviews}")})
	files.Write("workloads/two.yaml",
		workload{Name: "two", Spec: b[1].Endpoint("labels: {app: reviews, version: v2}")},
		workload{Name: "ratings", Spec: b[3].Endpoint("labels: {app: ratings}")})
	files.Write("workloads/elsewhere.yaml",
		workload{Name: "one", Namespace: "elsewhere", Spec: b[2].Endpoint("labels: {app: reviews}")})
	isthmus := start(t, files)
	client, other := dial(t, isthmus, reviews+":80", "shop"), dial(t, isthmus, "ratings.shop.example:80", "shop")
	client.AwaitAnswers("one", "two")
	other.AwaitAnswers("ratings")
	traffic := client.KeepCalling()

	// A change of its label moves a workload from one service to another.
	files.Write("workloads/one.yaml", workload{Name: "one", Spec: b[0].Endpoint("labels: {app: ratings}")})
	client.AwaitAnswers("two")
	other.AwaitAnswers("one", "ratings")

	// So does a change of what is selected.
	files.Write("services.yaml",
		service{Host: reviews, Selector: "{version: v2}"},
		service{Host: "ratings.shop.example", Selector: "{app: reviews}"})
	other.AwaitAnswers("two")
	client.AwaitAnswers("two")
	traffic.MustNotHaveFailed()
}

func TestWorkloadIsSelectedWhateverSourceItComesFrom(t *testing.T) {
	t.Parallel()
	services, machines, one := newRegistry(t, "services"), newRegistry(t, "machines"), startBackend(t, "one")
	services.Write("shop.yaml", service{Host: reviews, Selector: "{app: reviews}"})
	machines.Write("one.yaml", workload{Name: "one", Spec: one.Endpoint("labels: {app: reviews}")})
	machines.Write("stays.yaml", workload{Name: "stays", Spec: one.Endpoint("labels: {app: ratings}")}) // the last one would be held
	isthmus := start(t, services, machines)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one")
	machines.Remove("one.yaml")
	client.AwaitFailure("no targets")
}

func TestWorkloadThatFailsItsHealthChecksIsLeftOut(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "well", "sick")
	files.Write("services.yaml", service{Host: reviews, Selector: "{app: reviews}"})
	files.Write("well.yaml", workload{Name: "well", Spec: b[0].Endpoint("labels: {app: reviews}"), Healthy: "True"})
	sick := workload{Name: "sick", Spec: b[1].Endpoint("labels: {app: reviews}"), Healthy: "False"}
	files.Write("sick.yaml", sick)
	isthmus := start(t, files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("well")
	found := isthmus.AwaitService(reviews, whatever)
	if found.Endpoints.Healthy != 1 || found.Endpoints.Total != 2 {
		t.Errorf("the admin API counts %+v, want 1 of 2 to be healthy", found.Endpoints)
	}
	traffic := client.KeepCalling()

	sick.Healthy = "True"
	files.Write("sick.yaml", sick)
	client.AwaitAnswers("sick", "well")

	sick.Healthy = "False"
	files.Write("sick.yaml", sick)
	client.AwaitAnswers("well")
	traffic.MustNotHaveFailed()

	// Nobody is called rather than somebody who is sick.
	files.Remove("well.yaml")
	client.AwaitFailure("no targets")
}
