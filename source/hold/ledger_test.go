package hold_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// judged is a ledger with the records that its decisions have left, at a given time.
type judged struct {
	*hold.Ledger
	stored map[model.Ref]model.Record
	holds  map[model.Ref]model.Record // that are stored
	now    time.Time
	listed bool
}

func judge() *judged {
	return &judged{Ledger: hold.NewLedger(hold.Default(), false), stored: map[model.Ref]model.Record{}, holds: map[model.Ref]model.Record{}, now: time.Unix(1e9, 0)}
}

// serviceOf has a service with some of its endpoints.
func serviceOf(host string, from, to int) model.Object {
	o := model.Object{Record: model.Record{Ref: model.Ref{Kind: model.KindService, Key: model.Key{Namespace: "ns", Name: host}}, Spec: model.Service{Hosts: model.ListOf(host)}}}
	for i := from; i < to; i++ {
		ref := model.Ref{Kind: model.KindEndpoint, Key: model.Key{Namespace: "ns", Name: fmt.Sprintf("%s/%d", host, i)}}
		o.Owned = append(o.Owned, model.Record{Ref: ref, Spec: model.Endpoint{Address: fmt.Sprintf("192.0.2.%d", i)}})
	}
	return o
}

// serviceBeside has a service with its first endpoints and some that came later, from the hundredth on.
func serviceBeside(first, to int) model.Object {
	a := serviceOf("a", 100, to)
	a.Owned = append(a.Owned, serviceOf("a", 0, first).Owned...)
	return a
}

// list lists some objects after a while, and returns the numbers of stored and held records.
func (j *judged) list(after time.Duration, objects ...model.Object) (stored, held int) {
	j.now = j.now.Add(after)
	r, p := j.decide(objects)
	j.listed = true
	j.apply(p)
	j.Committed(r, p, j.now)
	return len(j.stored), j.Holds.Stock.Stored
}

// decide judges a listing of some objects.
func (j *judged) decide(objects []model.Object) (*reading.Reading, hold.Decision) {
	r := reading.OfListing(reading.Limits{Source: "reg"}, model.Listing{Objects: objects})
	d := r.Compare(j.Relist(maps.Values(j.stored)), j.Held, j.now)
	j.Flag()
	return r, j.Judge(hold.Listing{Reading: r, Difference: d, First: !j.listed, Stored: maps.Values(j.stored), Now: j.now})
}

// fail lists some objects after a while, and the store answers with an error: it has not taken
// the decision, or has taken it all the same.
func (j *judged) fail(taken bool, after time.Duration, objects ...model.Object) {
	j.now = j.now.Add(after)
	_, p := j.decide(objects)
	dropped := j.Apply(p, j.now)
	if taken {
		j.write(p)
	}
	all := maps.Clone(j.stored)
	maps.Copy(all, j.holds)
	j.Undo(p, dropped, maps.Values(all))
}

// report reports the deletion of endpoints one by one.
func (j *judged) report(after time.Duration, deleted ...model.Ref) (stored, held int) {
	j.now = j.now.Add(after)
	r := reading.OfChange(reading.Limits{Source: "reg"}, model.Change{OwnedDeletes: deleted})
	d := r.Compare(maps.Values(j.stored), j.Held, j.now)
	p := j.Report(r.Records, d)
	j.apply(p)
	j.Reported(r, p)
	return len(j.stored), j.Holds.Stock.Stored
}

// apply stores the writes of a decision.
func (j *judged) apply(p hold.Decision) {
	j.now = j.now.Add(time.Millisecond) // which a decision takes
	j.Apply(p, j.now)
	j.write(p)
	j.now = j.now.Add(time.Millisecond) // and a commit
}

func (j *judged) write(p hold.Decision) {
	for to, writes := range map[*map[model.Ref]model.Record][]model.Write{
		&j.stored: p.Writes, &j.holds: j.Holds.Writes("reg", j.Index, p.Writes, maps.Values(j.holds)),
	} {
		for _, w := range writes {
			if w.Delete {
				delete(*to, w.Record.Ref)
				continue
			}
			w.Record.Revision++
			(*to)[w.Record.Ref] = w.Record
		}
	}
}

func mustBe(t *testing.T, when string, stored, held, wantStored, wantHeld int) {
	t.Helper()
	if stored != wantStored || held != wantHeld {
		t.Errorf("%s %d records are stored and %d of them held; want %d and %d", when, stored, held, wantStored, wantHeld)
	}
}

// Law 2: a suspicious drop is held until three listings that span the time have lacked it.
func TestSuspiciousDropIsHeldUntilConfirmed(t *testing.T) {
	t.Parallel()
	j := judge()
	j.list(0, serviceOf("a", 0, 20))
	stored, held := j.list(time.Second, serviceOf("a", 0, 11))
	mustBe(t, "after the loss of nine", stored, held, 12, 0)
	stored, held = j.list(time.Second, serviceOf("a", 0, 10))
	mustBe(t, "after the loss of the tenth", stored, held, 21, 10)
	stored, held = j.list(30*time.Second, serviceOf("a", 0, 10))
	mustBe(t, "after a second listing", stored, held, 21, 10)
	stored, held = j.list(29*time.Second, serviceOf("a", 0, 10))
	mustBe(t, "after a third one that comes too early", stored, held, 21, 10)
	stored, held = j.list(time.Second, serviceOf("a", 0, 10))
	mustBe(t, "after a listing that confirms the loss", stored, held, 11, 0)
}

// A listing that has the records again ends their hold.
func TestHeldRecordsThatReturnAreHeldNoMore(t *testing.T) {
	t.Parallel()
	j := judge()
	j.list(0, serviceOf("a", 0, 20))
	j.list(time.Second, serviceOf("a", 0, 5))
	stored, held := j.list(time.Second, serviceOf("a", 0, 12))
	mustBe(t, "after the return of seven", stored, held, 21, 8)
	stored, held = j.list(time.Hour, serviceOf("a", 0, 20))
	mustBe(t, "after the return of all", stored, held, 21, 0)
}

// A held endpoint that ends is taken from no mark that did not count it. So a loss before the end
// of the hold and one after it add up.
func TestEndOfAHoldHidesNoLoss(t *testing.T) {
	t.Parallel()
	j := judge()
	j.list(0, serviceOf("a", 0, 20))
	j.list(time.Second, serviceOf("a", 0, 10))
	stored, held := j.list(time.Second, serviceBeside(10, 145))
	mustBe(t, "after the loss of ten while they are held and others come", stored, held, 66, 10)
	stored, held = j.list(50*time.Second, serviceBeside(10, 131))
	mustBe(t, "after the loss of fourteen more", stored, held, 52, 10)
	stored, held = j.list(10*time.Second, serviceBeside(10, 131))
	mustBe(t, "after a listing that confirms the first loss", stored, held, 42, 0)
	stored, held = j.list(time.Second, serviceBeside(10, 117))
	mustBe(t, "after the loss of fourteen more, of fifty-five", stored, held, 56, 28)
}

// A change lacks nothing: every deletion that a registry reports by itself passes.
func TestReportedDeletionsPass(t *testing.T) {
	t.Parallel()
	j := judge()
	j.list(0, serviceOf("a", 0, 20))
	var all []model.Ref
	for _, rec := range serviceOf("a", 0, 20).Owned {
		all = append(all, rec.Ref)
	}
	stored, held := j.report(time.Second, all[:15]...)
	mustBe(t, "after fifteen reported deletions", stored, held, 6, 0)
	stored, held = j.list(time.Second, serviceOf("a", 15, 20))
	mustBe(t, "after a listing without them", stored, held, 6, 0)
}

// Nor do held endpoints count as lost once the registry reports that they are gone.
func TestReportedEndsOfHeldEndpointsAreNoLoss(t *testing.T) {
	t.Parallel()
	j := judge()
	j.list(0, serviceOf("a", 0, 20))
	j.list(time.Second, serviceOf("a", 0, 10))
	var gone []model.Ref
	for _, rec := range serviceOf("a", 10, 20).Owned {
		gone = append(gone, rec.Ref)
	}
	stored, held := j.report(time.Second, gone...)
	mustBe(t, "after the deletion of the held ten is reported", stored, held, 11, 0)
	stored, held = j.list(time.Second, serviceOf("a", 0, 9))
	mustBe(t, "after the loss of one of the other ten", stored, held, 10, 0)
}

// Held endpoints that are listed again count once, also if the store rejects that first.
func TestHeldEndpointsReturnOnce(t *testing.T) {
	t.Parallel()
	j := judge()
	j.list(0, serviceOf("a", 0, 20))
	j.list(time.Second, serviceBeside(10, 100))
	j.list(time.Second, serviceBeside(10, 130))
	stored, held := j.list(time.Second, serviceBeside(10, 127))
	mustBe(t, "after the loss of three of forty, beside ten that are held", stored, held, 48, 10)
	j.fail(false, time.Second, serviceBeside(12, 127))
	stored, held = j.list(time.Second, serviceBeside(12, 127))
	mustBe(t, "after the return of two", stored, held, 48, 8)
	stored, held = j.list(time.Second, serviceBeside(12, 105))
	mustBe(t, "after the loss of most, with one of the three, for which the two made up", stored, held, 49, 31)
}

// A service that has as many endpoints as before lost none, whichever they are.
func TestReplacedEndpointsAreNoLoss(t *testing.T) {
	t.Parallel()
	j := judge()
	j.list(0, serviceOf("a", 0, 20), serviceOf("b", 20, 25))
	stored, held := j.list(time.Second, serviceOf("a", 100, 120), serviceOf("b", 20, 25))
	mustBe(t, "after a rollout", stored, held, 27, 0)
}

// What a listing has under another name is no loss, in that listing and in later ones.
func TestRenamedEndpointsAreNoLossLater(t *testing.T) {
	t.Parallel()
	j := judge()
	others := serviceOf("other", 0, 0)
	others.Record.Spec = serviceOf("a", 0, 0).Record.Spec
	for _, rec := range serviceOf("a", 5, 10).Owned {
		rec.Name = "other/" + rec.Name[len("a/"):]
		others.Owned = append(others.Owned, rec)
	}
	j.list(0, serviceOf("a", 0, 20))
	stored, held := j.list(time.Second, serviceOf("a", 10, 20), others)
	mustBe(t, "after the loss of five while five others moved", stored, held, 17, 0)
	stored, held = j.list(time.Second, serviceOf("a", 14, 20), others)
	mustBe(t, "after the loss of nine", stored, held, 13, 0)
	stored, held = j.list(time.Second, serviceOf("a", 15, 20), others)
	mustBe(t, "after the loss of the tenth", stored, held, 22, 10)
}

// Instances that register anew at their addresses are no loss, and hide none of the same listing.
func TestEndpointsRenamedInTheirServiceHideNoLoss(t *testing.T) {
	t.Parallel()
	j := judge()
	anew := serviceOf("a", 5, 20)
	for i := range anew.Owned[:5] {
		anew.Owned[i].Name += "-again"
	}
	j.list(0, serviceOf("a", 0, 20))
	stored, held := j.list(time.Second, anew)
	mustBe(t, "after the loss of five while five others registered anew", stored, held, 16, 0)
	anew.Owned = anew.Owned[4:]
	stored, held = j.list(time.Second, anew)
	mustBe(t, "after the loss of nine", stored, held, 12, 0)
	anew.Owned = anew.Owned[1:]
	stored, held = j.list(time.Second, anew)
	mustBe(t, "after the loss of the tenth", stored, held, 21, 10)
}

// named is a service with the host of another, and some of its endpoints.
func named(name, host string, from, to int) model.Object {
	o := serviceOf(name, from, to)
	o.Record.Spec = serviceOf(host, 0, 0).Record.Spec
	return o
}

// Endpoints that a service takes over from another object of its host make up for none that it lacks.
func TestEndpointsThatComeFromAnotherObjectHideNoLoss(t *testing.T) {
	t.Parallel()
	j := judge()
	j.list(0, serviceOf("a", 0, 20), named("other", "a", 20, 29))
	stored, held := j.list(time.Second, serviceOf("a", 9, 29))
	mustBe(t, "after the loss of nine while nine others came", stored, held, 21, 0)
	stored, held = j.list(time.Second, serviceOf("a", 14, 29))
	mustBe(t, "after the loss of fourteen", stored, held, 16, 0)
	stored, held = j.list(time.Second, serviceOf("a", 15, 29))
	mustBe(t, "after the loss of fifteen of twenty-nine", stored, held, 30, 15)
}

// Endpoints that would have come with a decision that is not stored are no loss when they do not come.
func TestEndpointsThatNeverCameAreNoLoss(t *testing.T) {
	t.Parallel()
	j := judge()
	other := named("other", "a", 20, 29)
	j.list(0, serviceOf("a", 0, 20), other)
	j.fail(false, time.Second, serviceOf("a", 1, 29))
	stored, held := j.list(time.Second, serviceOf("a", 0, 8), other)
	mustBe(t, "after the loss of twelve of twenty-nine", stored, held, 19, 0)
}

// A store may take a decision and answer with an error.
func TestEndpointsThatCameAllTheSameHideNoLoss(t *testing.T) {
	t.Parallel()
	j := judge()
	j.list(0, serviceOf("a", 0, 20), named("other", "a", 20, 29))
	j.fail(true, time.Second, serviceOf("a", 9, 29))
	j.list(time.Second, serviceOf("a", 9, 29))
	stored, held := j.list(time.Second, serviceOf("a", 14, 29))
	mustBe(t, "after the loss of fourteen", stored, held, 16, 0)
	stored, held = j.list(time.Second, serviceOf("a", 15, 29))
	mustBe(t, "after the loss of fifteen of twenty-nine", stored, held, 30, 15)
}

// A service is not merely renamed if the workloads that it selected are lost: it stays with them.
func TestServiceOfLostWorkloadsStays(t *testing.T) {
	t.Parallel()
	j := judge()
	next := named("a2", "a", 0, 0)
	next.Record.Spec = selecting("a", "app", "v2").Record.Spec
	j.list(0, append(workloadsOf("v", 0, 20), selecting("a", "app", "v"))...)
	stored, held := j.list(time.Second, next)
	mustBe(t, "after another service of the host came instead", stored, held, 22, 21)
}

// Several records of one address that become one are no loss, at once or later.
func TestRecordsOfOneAddressThatBecomeOneAreNoLoss(t *testing.T) {
	t.Parallel()
	j := judge()
	twice := serviceOf("a", 0, 21)
	again := serviceOf("a", 0, 20)
	for i := range again.Owned {
		again.Owned[i].Name += "-again"
	}
	twice.Owned = append(twice.Owned, again.Owned...)
	j.list(0, twice, serviceOf("b", 100, 102))
	twice.Owned = slices.Delete(twice.Owned, 20, 21)
	j.list(time.Second, twice, serviceOf("b", 100, 102))
	once := serviceOf("a", 0, 20)
	for i := range once.Owned {
		once.Owned[i].Name += "-new"
	}
	stored, held := j.list(time.Second, once, serviceOf("b", 100, 102))
	mustBe(t, "after each address has one record", stored, held, 24, 0)
	stored, held = j.list(time.Second, once, serviceOf("b", 101, 102))
	mustBe(t, "after the loss of another service's one", stored, held, 23, 0)
}

// A host that is written twice is one.
func TestHostThatIsWrittenTwiceIsOne(t *testing.T) {
	t.Parallel()
	j := judge()
	unaddressed := func(name string, hosts ...string) model.Object {
		o := serviceOf(name, 0, 1)
		o.Record.Spec = model.Service{Hosts: model.ListOf(hosts...)}
		o.Owned[0].Spec = model.Endpoint{Network: "n"}
		return o
	}
	j.list(0, unaddressed("a", "A.example", "a.example."))
	stored, held := j.list(time.Second, unaddressed("b", "a.example"))
	mustBe(t, "after it has another name", stored, held, 2, 0)
}

// selecting is a service that selects workloads by a label.
func selecting(host, label, value string) model.Object {
	o := serviceOf(host, 0, 0)
	o.Record.Spec = model.Service{Hosts: model.ListOf(host), WorkloadSelector: model.MapOf(map[string]string{label: value})}
	return o
}

// workloadsOf are workloads of an app. All apps are of one team.
func workloadsOf(app string, from, to int) (list []model.Object) {
	for i := from; i < to; i++ {
		ref := model.Ref{Kind: model.KindWorkload, Key: model.Key{Namespace: "ns", Name: fmt.Sprintf("%s-%d", app, i)}}
		labels := model.MapOf(map[string]string{"app": app, "team": "blue"})
		list = append(list, model.Object{Record: model.Record{Ref: ref, Spec: model.Workload{Endpoint: model.Endpoint{Address: app + fmt.Sprint(i), Labels: labels}}}})
	}
	return list
}

// A listing is judged by the selectors before it. Workloads that it has a service select
// make up for no loss in it, so as much comes back as was judged to be lost. They count from
// the next listing on.
func TestChangedSelectorsMakeUpForNothing(t *testing.T) {
	t.Parallel()
	j := judge()
	before, after := selecting("a", "app", "v"), selecting("a", "team", "blue")
	others := append(workloadsOf("w", 0, 12), serviceOf("b", 0, 30))
	with := func(a model.Object, more ...model.Object) []model.Object {
		return slices.Concat(others, []model.Object{a}, more)
	}
	j.list(0, with(before, workloadsOf("v", 0, 12)...)...)
	stored, held := j.list(time.Second, with(before, workloadsOf("v", 5, 12)...)...)
	mustBe(t, "after the loss of five", stored, held, 51, 0)
	stored, held = j.list(time.Second, with(after)...)
	mustBe(t, "after the loss of the other seven, with another selector", stored, held, 56, 12)
	j.list(30*time.Second, with(after)...)
	stored, held = j.list(30*time.Second, with(after)...)
	mustBe(t, "after listings that confirm the loss", stored, held, 44, 0)
	others = others[12:]
	stored, held = j.list(time.Hour, with(after)...)
	mustBe(t, "after the loss of all that the new selector selects", stored, held, 44, 12)
}
