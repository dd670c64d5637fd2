package loglimit_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/loglimit"
)

func TestEveryLineIsLoggedOrCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(loglimit.New(slog.NewTextHandler(&out, nil)))
		other := slog.New(loglimit.New(log.With("client", "b").Handler())) // is within the same limit
		for range 500 {
			log.Warn("again")
			other.Info("again")
			log.Debug("nobody asked for this")
		}
		log.Error("this is seen all the same")
		if n := strings.Count(out.String(), "again"); n != 10 {
			t.Errorf("%d lines were logged at once:\n%s", n, out.String())
		}
		if !strings.Contains(out.String(), "this is seen") {
			t.Error("an error was lost among warnings")
		}
		out.Reset()
		time.Sleep(time.Second)
		log.Warn("again")
		log.Warn("again")
		if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "unlogged=990") {
			t.Errorf("a second later it says:\n%s", text)
		}
		out.Reset()
		time.Sleep(time.Minute)
		other.WithGroup("g").Warn("again")
		log.Warn("again")
		if text := out.String(); strings.Count(text, "\n") != 2 || strings.Count(text, "unlogged=1\n") != 1 {
			t.Errorf("a minute later it says:\n%s", text)
		}
	})
}
