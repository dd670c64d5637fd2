package admin

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/push"
)

// Status is the state of an Isthmus as GET /api/v1/status shows it.
type Status struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Age     string    `json:"age"` // since the start
	Ready   bool      `json:"ready"`
	// Wrong reports whether any finding is an error or a warning.
	Wrong bool `json:"wrong"`
	// Findings are the unusual states of now: errors, warnings, notices; each group with the
	// oldest first.
	Findings  []Finding `json:"findings"`
	Sources   int       `json:"sources"`
	Services  int       `json:"services"`
	Endpoints int       `json:"endpoints"` // counted once per service port
	Clients   int       `json:"clients"`
}

// Severity is the importance of a finding.
type Severity string

// The severities. A notice alone does not make a status wrong.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityNotice  Severity = "notice"
)

// rank orders severities, the most important first.
func (s Severity) rank() int {
	return slices.Index([]Severity{SeverityError, SeverityWarning, SeverityNotice}, s)
}

// Finding is one unusual state of one part.
type Finding struct {
	Severity Severity `json:"severity"`
	// About is the part: "source legacy", "configuration", "output xds", "client web-1".
	About   string    `json:"about"`
	Problem string    `json:"problem"`        // with its consequence
	Since   time.Time `json:"since,omitzero"` // when the state began, if that is known
	Age     string    `json:"age,omitempty"`  // since then
	Next    string    `json:"next"`           // the command or edit that helps
}

// findings collects the findings of one moment.
type findings struct {
	now  time.Time
	list []Finding
}

func (f *findings) add(s Severity, about string, since time.Time, problem, next string) {
	f.list = append(f.list, Finding{Severity: s, About: about, Problem: problem, Since: since, Age: age(f.now, since), Next: next})
}

// sorted returns the findings: errors first, and of one severity the oldest first. A
// finding of unknown age comes last.
func (f *findings) sorted() []Finding {
	slices.SortStableFunc(f.list, func(a, b Finding) int {
		unknown := func(at time.Time) int {
			if at.IsZero() {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()), cmp.Compare(unknown(a.Since), unknown(b.Since)), a.Since.Compare(b.Since))
	})
	return f.list
}

func (a api) status(w http.ResponseWriter, _ *http.Request) {
	reply(w, a.parts.Log, a.parts.status(time.Now(), a.losers))
}

// status judges every part. It is the one source of GET /api/v1/status and
// GET /readyz?verbose.
func (p Parts) status(now time.Time, l *losers) Status {
	f := findings{now: now, list: []Finding{}}
	snapshot, outputs := p.Snapshot(), p.served()
	clients := map[string][]push.ClientStatus{}
	connected := 0
	for _, o := range outputs {
		clients[o.name] = o.Engine.Clients()
		connected += len(clients[o.name])
	}
	ready := f.readiness(p, connected)
	f.process(p)
	f.sources(p, ready, connected)
	p.Config().findings(&f)
	if p.Store != nil {
		p.Store().findings(&f)
	}
	f.certificates(p)
	f.list = append(f.list, authorityFindings(p.Authority, now)...)
	identityFindings(&f, p.Identity)
	for name, r := range p.outputs() {
		if r.Writer != nil {
			writerFindings(&f, name, r.Writer)
		}
	}
	for _, o := range outputs {
		clientFindings(&f, o.name, clients[o.name])
	}
	conflictFindings(&f, snapshot)
	l.newest(now, snapshot, outputs).findings(&f, snapshot.Revision)
	p.Config().splits(&f, snapshot, outputs)
	s := Status{
		Version: p.Version, Started: p.Started, Age: age(now, p.Started), Ready: ready, Findings: f.sorted(),
		Sources: len(p.Sources()), Services: snapshot.Totals().Services, Endpoints: snapshot.Totals().Endpoints, Clients: connected,
	}
	s.Wrong = slices.ContainsFunc(s.Findings, func(f Finding) bool { return f.Severity != SeverityNotice })
	return s
}
