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
		say(w, "store: %s", a.parts.Store())
	}
	for _, f := range a.parts.faults() {
		say(w, "%s", f)
	}
	for _, o := range a.parts.served() {
		for _, p := range o.Engine.Panics() {
			if p.Count > 0 {
				say(w, "output %s: %d panics in a %s, the last %s ago: %s; please report it with the log", o.name, p.Count, p.Where, age(now, p.Last), p.Text)
			}
		}
	}
	a.parts.Config().writeProblems(w)
}

func withReason(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
