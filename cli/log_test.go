package cli

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/config"
)

// A logger that was derived long before follows a change of level and format.
func TestTheLogChangesWhileItIsWritten(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log, logging := newLog(config.Log{Level: "warn", Format: "text"}, &out)
	derived := log.With("source", "files").WithGroup("g").With("n", 1)
	derived.Info("not said")
	derived.Warn("first")
	logging.set(config.Log{Level: "info", Format: "json"})
	derived.Info("second", slog.Int("m", 2))
	logging.set(config.Log{Level: "error", Format: "text"})
	derived.Warn("not said")
	derived.Error("third")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{
		`level=WARN msg=first source=files g.n=1`,
		`"level":"INFO","msg":"second","source":"files","g":{"n":1,"m":2}}`,
		`level=ERROR msg=third source=files g.n=1`,
	}
	if len(lines) != len(want) {
		t.Fatalf("logged %q", lines)
	}
	for i, end := range want {
		if !strings.HasSuffix(lines[i], end) {
			t.Errorf("line %d is %s, want %s", i, lines[i], end)
		}
	}
}

// What others wrote is in the log as characters that print, on its own line, in
// either format.
func TestTheLogPrints(t *testing.T) {
	t.Parallel()
	const evil = "a\x1b[31m\u009b\u202e\x7f\nlevel=INFO msg=forged\xff"
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		log, _ := newLog(config.Log{Level: "info", Format: format}, &out)
		log.With("client", evil).WithGroup(evil).Info(evil, slog.String(evil, evil), slog.Any("err", errors.New(evil)), slog.Any("list", []string{evil})) //nolint:sloglint // the key is what it is about
		line, end := strings.CutSuffix(out.String(), "\n")
		if !end || strings.ContainsFunc(line, func(r rune) bool { return !strconv.IsPrint(r) }) {
			t.Errorf("%s: logged %q", format, out.String())
		}
	}
}
