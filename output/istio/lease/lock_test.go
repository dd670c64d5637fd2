package lease

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// TestFenceIsOpenOnlyWhileTheLeaseIsOurs follows a fence through renewals that
// are in time, fail, are answered late, or give the lease away.
func TestFenceIsOpenOnlyWhileTheLeaseIsOurs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &lock{trouble: trouble{log: slog.New(slog.DiscardHandler)}, LeaseLock: &resourcelock.LeaseLock{LockConfig: resourcelock.ResourceLockConfig{Identity: "us"}}}
		ours, nobodys := resourcelock.LeaderElectionRecord{HolderIdentity: "us"}, resourcelock.LeaderElectionRecord{}
		answer := func(after time.Duration, err error) func() error {
			return func() error { time.Sleep(after); return err }
		}
		expect := func(what string, open bool) {
			t.Helper()
			if err := f.open(); (err == nil) != open {
				t.Errorf("%s: %v", what, err)
			}
		}
		expect("before the election", false)
		_ = f.take(ours, answer(0, nil))
		expect("elected", true)
		time.Sleep(renewWithin)
		expect("at the last moment", true)
		time.Sleep(time.Millisecond)
		expect("not renewed", false)
		_ = f.take(ours, answer(0, errors.New("conflict")))
		expect("a renewal failed", false)
		_ = f.take(ours, answer(leaseFor, nil))
		expect("a renewal was answered when the lease had expired", false)
		_ = f.take(ours, answer(time.Second, nil))
		expect("renewed", true)
		time.Sleep(renewWithin)
		expect("counted from when it was asked for", false)
		_ = f.take(nobodys, answer(0, nil))
		expect("given back", false)
	})
}
