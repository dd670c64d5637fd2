package feature_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestRestoredRecordsAreAsOldAsTheirListing restarts twice while a registry is
// away and another one changes. What is served of the first is as old as its last
// listing, whenever the rest was saved.
func TestRestoredRecordsAreAsOldAsTheirListing(t *testing.T) {
	t.Parallel()
	away, other, one, dir := newRegistry(t, "away"), newRegistry(t, "other"), startBackend(t, "one"), t.TempDir()
	away.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(one)})
	other.Write("shop.yaml", service{Host: ratings, Endpoints: endpoints(one)})
	i := startWith(t, saving(loopback, dir, away, other), away, other)
	i.AwaitSource("away", "live", "")
	i.AwaitSource("other", "live", "")
	away.Move("", "../unmounted")
	i.AwaitSource("away", "stale", "no such file or directory")
	listed := i.Source("away").LastListing
	await(t, "some time to pass", func() error {
		if age := time.Since(listed); age < 3*time.Second {
			return fmt.Errorf("it is %s since the listing", age)
		}
		return nil
	})
	for n := range 2 {
		other.Write(fmt.Sprintf("shop-%d.yaml", n), service{Host: fmt.Sprintf("%d-%s", n, ratings), Endpoints: endpoints(one)})
		host := fmt.Sprintf("%d-%s", n, ratings)
		await(t, "the change to be on disk", func() error {
			_, services, err := i.get("/api/v1/services")
			if err != nil || !strings.Contains(services, host) {
				return fmt.Errorf("%s is not there: %w", host, err)
			}
			_, metrics, err := i.get("/metrics")
			if err != nil || !strings.Contains(metrics, "\nisthmus_store_save_lag_seconds 0\n") || !strings.Contains(metrics, "\nisthmus_store_write_lag_seconds 0\n") {
				return fmt.Errorf("it is not saved: %w", err)
			}
			return nil
		})
		i.Stop()
		i = startWith(t, saving(loopback, dir, away, other), away, other)
		i.AwaitSource("away", "stale", "serving the last known good from "+listed.UTC().Format(time.RFC3339))
		i.AwaitSource("other", "live", "")
	}
}
