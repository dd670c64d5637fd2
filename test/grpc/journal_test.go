package grpc_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// call is a call that has ended.
type call struct {
	ended time.Time
	took  time.Duration
	by    string // the backend that answered
	err   string // empty if it was answered
}

func (c call) failed() bool { return c.err != "" }

func (c call) began() time.Time { return c.ended.Add(-c.took) }

func (c call) String() string {
	return fmt.Sprintf("at %s, after %s: %s", c.ended.Format("15:04:05.000"), c.took, cmp.Or(c.err, "answered by "+c.by))
}

// journal is what a client has printed, which is one line per call. It may be
// read while it is written.
type journal struct {
	mu      sync.Mutex
	rest    []byte // of a line that is not complete
	calls   map[string][]call
	invalid []string // lines
	made    int      // as the client says at its end, otherwise -1
}

func newJournal() *journal { return &journal{calls: map[string][]call{}, made: -1} }

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rest = append(j.rest, p...)
	for {
		line, rest, complete := bytes.Cut(j.rest, []byte("\n"))
		if !complete {
			return len(p), nil
		}
		j.rest = rest
		j.take(string(line))
	}
}

// take takes a line of the protocol that package clients documents.
func (j *journal) take(line string) {
	fields := strings.Split(line, "\t")
	number, err := strconv.Atoi(fields[min(1, len(fields)-1)])
	if fields[0] == "end" && err == nil {
		j.made = number
		return
	}
	micros, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || len(fields) != 4 || (fields[2] == "") == (fields[3] == "") {
		j.invalid = append(j.invalid, line)
		return
	}
	j.calls[fields[1]] = append(j.calls[fields[1]], call{
		ended: time.Now(), took: time.Duration(micros) * time.Microsecond, by: fields[2], err: fields[3],
	})
}

// Len is how many calls to a target have ended.
func (j *journal) Len(target string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.calls[target])
}

// Last is the last n calls to a target, or nothing before so many have ended
// after the first from.
func (j *journal) Last(target string, from, n int) []call {
	j.mu.Lock()
	defer j.mu.Unlock()
	if all := j.calls[target]; len(all) >= from+n {
		return slices.Clone(all[len(all)-n:])
	}
	return nil
}

// Since are the calls to a target that have ended after the first from.
func (j *journal) Since(target string, from int) []call {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.calls[target][from:])
}

// Select are the calls to a target for which a condition holds.
func (j *journal) Select(target string, holds func(call) bool) []call {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []call
	for _, c := range j.calls[target] {
		if holds(c) {
			found = append(found, c)
		}
	}
	return found
}

// Began is when the first call to a target was made.
func (j *journal) Began(target string) time.Time {
	all := j.Select(target, func(call) bool { return true })
	return slices.MinFunc(all, func(a, b call) int { return a.began().Compare(b.began()) }).began()
}

// By are the calls to a target that a backend answered.
func (j *journal) By(target, name string) []call {
	return j.Select(target, func(c call) bool { return c.by == name })
}

// MustBeWhole is that the client has kept to the protocol, and every call that
// it says it made has ended.
func (j *journal) MustBeWhole(t *testing.T) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	ended := 0
	for _, calls := range j.calls {
		ended += len(calls)
	}
	if ended != j.made || len(j.invalid) > 0 || len(j.rest) > 0 {
		t.Errorf("%d calls ended, %d were made; not understood: %q %q", ended, j.made, j.invalid, j.rest)
	}
}

// answered are those who answered calls, in order, with errors among them.
func answered(calls []call) []string {
	var names []string
	for _, c := range calls {
		names = append(names, c.by+c.err)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
