package lease

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is the lease as the lock of an election, and also knows until when it is certainly
// ours. The elector detects a lost lease only when it tries to renew it. A replica that was
// stopped for longer than the lease would until then continue its work. The preconditions
// of its writes do not stop it from recreating objects that its successor deleted.
type lock struct {
	*resourcelock.LeaseLock
	renewed atomic.Pointer[time.Time] // when the newest successful renewal was requested
	trouble trouble
}

// Get implements [resourcelock.Interface].
func (f *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := f.LeaseLock.Get(ctx)
	f.trouble.read(raw, err == nil && record.HolderIdentity == f.Identity(), err)
	return record, raw, err
}

// Create implements [resourcelock.Interface].
func (f *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return f.take(r, func() error { return f.LeaseLock.Create(ctx, r) })
}

// Update implements [resourcelock.Interface].
func (f *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return f.take(r, func() error { return f.LeaseLock.Update(ctx, r) })
}

// take counts from before the request: the answer may have waited while this process was
// stopped.
func (f *lock) take(r resourcelock.LeaderElectionRecord, write func() error) error {
	began := time.Now()
	err := write()
	f.trouble.wrote(err)
	if err == nil && r.HolderIdentity == f.Identity() {
		f.renewed.Store(&began)
	}
	return err
}

// ErrExpired reports that the lease may be held by another replica.
var ErrExpired = errors.New("the lease was not renewed in time; another replica may be writing")

// open returns nil while no other replica can hold the lease. It checks both clocks: the
// monotonic one stands still while a machine is suspended, and the other can be set.
func (f *lock) open() error {
	renewed, now := f.renewed.Load(), time.Now()
	if renewed == nil || now.Sub(*renewed) > renewWithin || now.Round(0).Sub(renewed.Round(0)) > renewWithin {
		return ErrExpired
	}
	return nil
}

// Fenced sends writes only while a fence is open, and reads always. The fence is checked at
// the last moment: a request may have been queued before.
type Fenced struct {
	Next http.RoundTripper
	Open func() error
}

// RoundTrip implements [http.RoundTripper].
func (t Fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return t.Next.RoundTrip(r)
	}
	if err := t.Open(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	return t.Next.RoundTrip(r)
}
