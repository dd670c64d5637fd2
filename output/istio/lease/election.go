// Package lease elects one of several replicas by a Lease, and knows until when the lease is
// certainly held. [Election.Run] owns all goroutines; other methods may be called from any.
package lease

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/output/istio/apiserver"
)

// The times of the lease, equal to Kubernetes' own controllers': a leader that cannot renew
// stops after renewWithin, and others wait for leaseFor.
const (
	leaseFor    = 15 * time.Second
	renewWithin = 10 * time.Second
	retryEvery  = 2 * time.Second
)

// Election elects one of several replicas at a time.
type Election struct {
	lock   *lock
	log    *slog.Logger
	events *events.Log
	now    atomic.Pointer[string] // the leading replica
}

// New returns an election by the Lease of a name. It does not connect yet. Changes of the
// leader go to a log of events, which may be nil.
func New(namespace, name string, target *rest.Config, changes *events.Log, log *slog.Logger) (*Election, error) {
	// The lock has its own client: renewals must not wait behind writes.
	own := rest.CopyConfig(target)
	own.ContentType, own.QPS = "application/json", -1
	lock := &lock{trouble: trouble{log: log}}
	own.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &apiserver.Patient{Next: next, Limit: renewWithin / 2, Failed: lock.trouble.failed, Answered: func() {}}
	})
	client, err := coordination.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	lock.LeaseLock = &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Client:    client, LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + rand.Text()[:8]},
	}
	return &Election{log: log, events: changes, lock: lock}, nil
}

// Run calls term while this replica leads, repeatedly until ctx ends. The context of a term
// ends when the lease is lost. The lease is released only when the term has returned, so
// that terms never overlap.
func (l *Election) Run(ctx context.Context, term func(context.Context)) {
	for ctx.Err() == nil {
		l.once(ctx, term)
	}
}

// once takes part in the election until a term has ended, or ctx ends.
func (l *Election) once(ctx context.Context, term func(context.Context)) {
	election, leave := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.FromSlogHandler(quiet{l.log.Handler()})))
	defer leave()
	var terms sync.WaitGroup
	elected := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l.lock, Name: l.lock.LeaseMeta.Name, ReleaseOnCancel: false, // see release
		LeaseDuration: leaseFor, RenewDeadline: renewWithin, RetryPeriod: retryEvery,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				defer close(elected)
				l.lock.trouble.lead()
				l.log.Info("this replica writes", "lease", l.lock.Describe())
				within, end := both(ctx, leading)
				defer end()
				term(within)
			},
			OnStoppedLeading: func() {},
			OnNewLeader:      l.changed,
		},
	})
	if err != nil {
		l.log.Error("no election", "err", err)
		return
	}
	terms.Go(func() { elector.Run(election) })
	select { // a term ends with ctx, so both may be true
	case <-ctx.Done():
		if elector.IsLeader() {
			<-elected
		}
	case <-elected:
	}
	leading := elector.IsLeader()
	leave()
	terms.Wait()
	if leading && ctx.Err() != nil {
		l.release(context.WithoutCancel(ctx))
		return
	}
	if ctx.Err() == nil {
		l.lock.trouble.lose(l.lock.Describe())
		l.event("this replica has lost the lease " + l.lock.Describe() + ", and writes no longer")
	}
}

// changed notes the leading replica; empty if none leads.
func (l *Election) changed(who string) {
	before := l.now.Swap(&who)
	switch {
	case before != nil && *before == who: // reported by the elector of the next term
	case who == l.lock.Identity():
		l.event("this replica writes: " + who)
	case who == "":
		l.event("no replica writes")
	default:
		l.event("another replica writes: " + who)
	}
}

func (l *Election) event(text string) {
	l.events.Add(events.Event{Kind: events.Leader, Output: "istio", Text: text})
}

// release releases the lease. The elector could do that itself, but does not wait for the
// term to end.
func (l *Election) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, retryEvery)
	defer cancel()
	record, _, err := l.lock.Get(ctx)
	if err != nil || record.HolderIdentity != l.lock.Identity() {
		return
	}
	record.HolderIdentity, record.LeaseDurationSeconds, record.RenewTime = "", 1, metav1.Now()
	if err := l.lock.Update(ctx, *record); err != nil {
		l.log.Info("the lease is left to expire", "lease", l.lock.Describe(), "err", err)
	}
}

// Open returns an error unless the lease is certainly held by this replica.
func (l *Election) Open() error { return l.lock.open() }

// Trouble returns why the lease is not available, and since when; empty if it is.
func (l *Election) Trouble() (reason string, since time.Time) { return l.lock.trouble.now() }

// both returns a context that ends with either of two.
func both(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a)
	stop := context.AfterFunc(b, cancel)
	return ctx, func() { stop(); cancel() }
}

// Holder names the replica that leads, and whether it is this one.
func (l *Election) Holder() (name string, own bool) {
	if who := l.now.Load(); who != nil {
		return *who, *who == l.lock.Identity()
	}
	return "", false
}
