package supervise_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// logged has a source supervised that logs into what is returned.
func logged(t *testing.T, test func(b *bridge, log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer // written to by one goroutine, and read while that one waits
		test(connectWith(t, newLedger(), supervise.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}), &log)
	})
}

// says counts lines of a log that have all of the words, and empties it.
func says(log *bytes.Buffer) func(words ...string) int {
	lines := strings.Split(log.String(), "\n")
	log.Reset()
	return func(words ...string) (n int) {
		for _, line := range lines {
			found := true
			for _, word := range words {
				found = found && strings.Contains(line, word)
			}
			if found {
				n++
			}
		}
		return n
	}
}

// An outage is in the log when it begins, then once in a minute with how often
// it has been tried, and when it is over; status and reason follow each try.
func TestAnOutageDoesNotFillTheLog(t *testing.T) {
	logged(t, func(b *bridge, log *bytes.Buffer) {
		b.list(service("a", "f"))
		time.Sleep(time.Hour)
		says(log)
		began, failures := time.Now(), 0
		for time.Since(began) < 10*time.Minute {
			failures++
			reason := fmt.Sprintf("no route the %dth time", failures)
			b.fail(reason)
			mentions(t, b.Status().Reason, reason)
			if failures == 1 {
				if n := says(log)("level=WARN", `msg="source failed"`, "no route", "failures=1", "for=0s"); n != 1 {
					t.Errorf("%d lines when it begins", n)
				}
			}
			if b.Status().State != source.StateStale {
				t.Fatalf("status: %+v", b.Status())
			}
		}
		text := log.String()
		said := says(log)
		if n := said(`msg="source failed"`); n < 6 || n > 9 || failures < 2*n || said(`msg="source failed"`, "failures=1 ") > 0 {
			t.Errorf("%d lines about %d failures in ten minutes:\n%s", n, failures, text)
		}
		b.list(service("a", "f"))
		b.list(service("a", "f"))
		if n := says(log)("level=INFO", `msg="source is live"`, "failures="); n != 1 {
			t.Errorf("%d lines when it is over", n)
		}
		time.Sleep(time.Hour)
		b.fail("another outage")
		if n := says(log)(`msg="source failed"`, "another outage", "failures=1"); n != 1 {
			t.Errorf("%d lines about another outage", n)
		}
	})
}

// One that comes and goes says so once in a minute, and the log never ends
// with an outage that is over.
func TestAFlappingSourceDoesNotFillTheLog(t *testing.T) {
	logged(t, func(b *bridge, log *bytes.Buffer) {
		b.list(service("a", "f"))
		for began := time.Now(); time.Since(began) < 5*time.Minute; {
			b.fail("reset")
			b.list(service("a", "f"))
		}
		text := log.String()
		said := says(log)
		if failed, live := said("source failed"), said("source is live"); failed < 4 || failed > 6 || live != failed+1 {
			t.Errorf("%d lines about failures, %d about recoveries:\n%s", failed, live, text)
		}
	})
}

// A source may fail on, and then by a defect: the stack is in the log.
func TestADefectIsLoggedDuringAnOutage(t *testing.T) {
	logged(t, func(b *bridge, log *bytes.Buffer) {
		b.fail("no route")
		b.panics("boom")
		b.panics("boom")
		if n := says(log)("panic: boom", "stack="); n != 1 {
			t.Errorf("%d lines about the defect", n)
		}
	})
}

// A drop that is held over an outage is still held after it, and the outage is over.
func TestTheEndOfAnOutageIsLoggedWhileADropIsHeld(t *testing.T) {
	logged(t, func(b *bridge, log *bytes.Buffer) {
		b.list(service("a", "f", crowd(30)...))
		b.list(service("a", "f"))
		b.inState(source.StateHeld)
		time.Sleep(time.Second)
		b.fail("no route")
		says(log)
		b.list(service("a", "f"))
		b.inState(source.StateHeld)
		if n := says(log)("level=INFO", `msg="source works again"`, "state=held", "failures=1"); n != 1 {
			t.Errorf("%d lines when it is over", n)
		}
	})
}
