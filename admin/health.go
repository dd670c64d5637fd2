package admin

import (
	"net/http"
	"time"
)

func (a api) livez(w http.ResponseWriter, _ *http.Request) {
	if reason := a.parts.Stuck(); reason != "" {
		fail(w, http.StatusServiceUnavailable, "%s", reason)
		return
	}
	say(w, "ok")
}

func (a api) readyz(w http.ResponseWriter, r *http.Request) {
	missing := a.parts.Missing()
	if len(missing) > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusServiceUnavailable)
		say(w, "not ready")
		for _, m := range missing {
			say(w, "missing: %s", m)
		}
	} else {
		say(w, "ok")
	}
	if !isVerbose(r) {
		return
	}
	now := time.Now()
	for _, supervisor := range a.parts.Sources() {
		status := supervisor.Status()
		say(w, "source %s: %s for %s%s", status.Name, status.State, age(now, status.Since), withReason(status.Reason))
	}
	if a.parts.Store != nil {
		say(w, "store: %s", a.parts.Store().Text)
	}
	for _, f := range a.parts.status(now, a.losers).Findings {
		say(w, "%s", f)
	}
}

// String returns a finding as a line of text.
func (f Finding) String() string {
	text := string(f.Severity) + ": " + f.About + ": " + f.Problem
	if f.Age != "" {
		text += ", for " + f.Age
	}
	return text + "; next: " + f.Next
}

func withReason(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
