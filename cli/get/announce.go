package get

import (
	"cmp"
	"fmt"
	"io"

	"google.golang.org/grpc/status"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/client"
)

// announcer says on the error output why records are not known, or may be old. It says
// nothing twice in a row.
type announcer struct {
	out     io.Writer
	options *options
	sources map[string]string // the last line about each source
	problem string            // the last one
	resets  int
}

// isOfCall reports whether an error is of a call, and not that the replica waits.
func isOfCall(err error) bool {
	_, is := status.FromError(err)
	return is && err != nil
}

// waiting names the sources that are not primed.
func (a *announcer) waiting(replica *client.Replica) {
	for s := range replica.Sources() {
		if !s.GetPrimed() && a.concerns(s) {
			a.source(s, "waiting for source "+describe(s))
		}
	}
}

// incomplete names the sources of which records may be missing.
func (a *announcer) incomplete(replica *client.Replica) {
	for s := range replica.Sources() {
		switch {
		case !a.concerns(s):
		case s.GetPrimed():
			a.source(s, "")
		default:
			a.source(s, "records may be missing: Isthmus does not wait for source "+describe(s))
		}
	}
}

// changes says which sources changed their state, and what is wrong with the watch.
func (a *announcer) changes(replica *client.Replica) {
	for s := range replica.Sources() {
		text := ""
		if !s.GetPrimed() || s.GetState() != "live" && s.GetState() != "" {
			text = "source " + describe(s)
		}
		if text == "" && a.sources[s.GetName()] != "" {
			term.Say(a.out, "source %s\n", describe(s))
		}
		if a.concerns(s) {
			a.source(s, text)
		}
	}
	if n, reason := replica.Resets(); n != a.resets {
		a.resets = n
		term.Say(a.out, "reset: %s; the records are read anew, and their differences follow\n", reason)
	}
	problem := ""
	if _, why := replica.Known(); isOfCall(why) {
		problem = "the watch broke, and is tried again: " + a.options.server.explain(why).Error()
	} else if why != nil {
		problem = why.Error()
	}
	if problem != a.problem {
		term.Say(a.out, "%s\n", cmp.Or(problem, "the watch goes on"))
	}
	a.problem = problem
}

// source says a text about a source, unless it is empty or the same as before.
func (a *announcer) source(s *resourcev1alpha1.SourceState, text string) {
	if a.sources == nil {
		a.sources = map[string]string{}
	}
	if text != "" && text != a.sources[s.GetName()] {
		term.Say(a.out, "%s\n", text)
	}
	a.sources[s.GetName()] = text
}

// concerns reports whether the wanted records can be of a source.
func (a *announcer) concerns(s *resourcev1alpha1.SourceState) bool {
	return a.options.source == "" || a.options.source == s.GetName()
}

func describe(s *resourcev1alpha1.SourceState) string {
	state := s.GetState()
	if state == "" {
		state = "unknown"
		if s.GetPrimed() {
			state = "listed"
		}
	}
	if s.GetReason() != "" {
		return fmt.Sprintf("%s: it is %s: %s", s.GetName(), state, s.GetReason())
	}
	return fmt.Sprintf("%s: it is %s", s.GetName(), state)
}
