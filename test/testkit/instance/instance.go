// Package instance runs Isthmus in the process of a test.
package instance

import (
	"context"
	"log/slog"
	"testing"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/config"
)

// Run runs an Isthmus until the test ends, which fails if Isthmus ends with an error.
// It listens when Run returns, and may not have read its registries yet.
func Run(t testing.TB, c *config.Config) *app.App {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	a, err := app.New(ctx, c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return a
}
