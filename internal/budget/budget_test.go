package budget_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/internal/budget"
)

// However many take of a budget, and of its shares, they never have more than there is.
func TestNeverMoreIsTakenThanThereIs(t *testing.T) {
	t.Parallel()
	whole := budget.New(100)
	shares := []*budget.Budget{whole.Share("a"), whole.Share("b"), whole.Share("c")}
	var all atomic.Int64
	each := make([]atomic.Int64, len(shares))
	var users sync.WaitGroup
	for i := range 60 {
		users.Go(func() {
			bytes, at := int64(1+i), i%len(shares)
			give, err := shares[at].Take(t.Context(), bytes)
			if err != nil {
				t.Error(err)
				return
			}
			bytes = min(bytes, 50)
			if n := all.Add(bytes); n > 100 {
				t.Errorf("%d bytes of 100 are taken", n)
			}
			if n := each[at].Add(bytes); n > 50 {
				t.Errorf("%d bytes of a share of 50 are taken", n)
			}
			each[at].Add(-bytes)
			all.Add(-bytes)
			give()
		})
	}
	users.Wait()
	if give, err := whole.Take(t.Context(), 1000); err != nil { // all of it was given back
		t.Error(err)
	} else {
		give()
	}
}

// Who cannot wait any longer has taken nothing, of the share or of the whole.
func TestWhoGivesUpHasNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := budget.New(100)
		share, all := whole.Share("a"), take(t, whole, 100)
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := make(chan error)
		go func() {
			_, err := share.Take(ctx, 10)
			failed <- err
		}()
		synctest.Wait()
		why := errors.New("the end")
		cancel(why)
		if err := <-failed; !errors.Is(err, why) {
			t.Errorf("it failed with %v", err)
		}
		all()
		take(t, share, 50)()
		take(t, whole, 100)()
	})
}

func take(t *testing.T, b *budget.Budget, bytes int64) (give func()) {
	t.Helper()
	give, err := b.Take(t.Context(), bytes)
	if err != nil {
		t.Fatal(err)
	}
	return give
}

func TestNoBudgetIsNoBound(t *testing.T) {
	t.Parallel()
	var none *budget.Budget
	take(t, none.Share("a"), 1<<60)()
	if got := none.Bytes(7); got != 7 {
		t.Errorf("it has %d bytes", got)
	}
	if got := budget.New(5).Bytes(7); got != 5 {
		t.Errorf("it has %d bytes", got)
	}
	if got := budget.OfProcess().Bytes(1 << 60); got <= 0 || got > budget.Most {
		t.Errorf("a process has %d bytes", got)
	}
}

// What all users keep for long is never more than half of the whole, however many there
// are: each may keep the same.
func TestWhatIsKeptForLongIsDivided(t *testing.T) {
	t.Parallel()
	whole := budget.New(1200)
	first := whole.Share("first")
	keeps := func(want int64) {
		t.Helper()
		if n := first.Lasting(1 << 20); n != want {
			t.Errorf("it may keep %d bytes of 1200, and not %d", n, want)
		}
	}
	first.Keep()
	whole.Share("second") // which keeps nothing
	keeps(600)
	whole.Share("second").Keep()
	whole.Share("third").Keep()
	keeps(200)
	whole.Share("third").Keep() // with other settings
	keeps(200)
	whole.Leave("second")
	keeps(300)
	if n := first.Lasting(100); n != 100 {
		t.Errorf("it may keep %d bytes where 100 are the most", n)
	}
	var none *budget.Budget
	if n := none.Share("a").Lasting(100); n != 100 {
		t.Errorf("without a bound it may keep %d bytes of 100", n)
	}
}
