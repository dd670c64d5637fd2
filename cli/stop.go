package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/isthmus-mesh/isthmus/output"
)

// stopLimit is how long a server may take to end once it was asked to. The process's
// supervisor kills it at some time, and requests made while it stops are lost.
const stopLimit = output.Drain + time.Second

// stopWithin runs a server, and returns when it has ended, or when [stopLimit] has passed
// since ctx ended. Unfinished work is then abandoned: the process is about to end. The
// store handles that like a crash, which loses nothing that was handed to the disk.
func stopWithin(ctx context.Context, log *slog.Logger, run func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- run() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(stopLimit)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		log.Warn("not all work ended in time: the rest is aborted", "limit", stopLimit)
		return nil
	}
}
