package lease

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/isthmus-mesh/isthmus/output/istio/apiserver"
)

// trouble is why the lease cannot be read or written. It is logged once, however often
// the access is retried.
type trouble struct {
	log *slog.Logger

	mu      sync.Mutex
	reading string // why the lease cannot be read; empty if it can
	writing string // why the lease cannot be taken or renewed
	since   time.Time
	logged  bool
	leading bool   // the end of the term logs the trouble
	seen    []byte // the record that was read last
}

// failed records that the lease could not be read.
func (t *trouble) failed(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	t.note(func() {
		if late := errors.Is(err, context.DeadlineExceeded); !late || t.reason() == "" { // otherwise an earlier reason is more exact
			t.reading = apiserver.Explain(err)
		}
	})
}

// read records an attempt to read the lease. A lease renewed by another replica is not ours
// to renew, so an earlier write error no longer matters.
func (t *trouble) read(record []byte, own bool, err error) {
	if err != nil && !apierrors.IsNotFound(err) {
		t.failed(err)
		return
	}
	t.note(func() {
		t.reading = ""
		if !own && !bytes.Equal(record, t.seen) {
			t.writing = ""
		}
		t.seen = record
	})
}

// wrote records an attempt to take or renew the lease. A quicker replica is no trouble.
func (t *trouble) wrote(err error) {
	switch {
	case errors.Is(err, context.Canceled), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
	case err != nil:
		t.note(func() { t.writing = apiserver.Explain(err) })
	default:
		t.note(func() { t.reading, t.writing = "", "" })
	}
}

func (t *trouble) note(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.reason()
	change()
	reason := t.reason()
	switch {
	case reason != "" && before == "":
		t.since = time.Now()
	case reason == "" && t.logged:
		t.logged = false
		t.log.Info("the lease can be read and renewed again", "after", time.Since(t.since).Round(time.Millisecond))
	}
	if reason != "" && !t.leading && !t.logged {
		t.logged = true
		t.log.Warn("the lease cannot be had, so this replica does not write; it is tried again", "reason", reason)
	}
}

// lead records that a term begins.
func (t *trouble) lead() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leading = true
}

// lose records that a term has ended, and logs it.
func (t *trouble) lose(lease string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leading = false
	reason := t.reason()
	if reason == "" {
		t.log.Warn("this replica does not write any more: another one holds the lease", "lease", lease)
		return
	}
	t.logged = true
	t.log.Warn("this replica does not write any more: the lease could not be renewed in time; it is tried again",
		"lease", lease, "reason", reason, "for", time.Since(t.since).Round(time.Millisecond))
}

// reason returns the reason in an operator's words. The caller holds the lock.
func (t *trouble) reason() string {
	switch {
	case t.reading != "":
		return "the lease cannot be read: " + t.reading
	case t.writing != "":
		return "the lease cannot be renewed: " + t.writing
	}
	return ""
}

// now returns the trouble of the lease, and since when; empty if there is none.
func (t *trouble) now() (reason string, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reason(), t.since
}

// quiet lowers the client library's election log to the debug level: it has an error every
// few seconds of an outage.
type quiet struct{ slog.Handler }

// Enabled implements [slog.Handler].
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, min(level, slog.LevelDebug))
}

// Handle implements [slog.Handler]. Errors come without a call of Enabled.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = min(r.Level, slog.LevelDebug)
	if !q.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup implements [slog.Handler].
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
