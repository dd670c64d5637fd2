package admin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/source"
)

// Obstacle is a reason why an Isthmus is not ready.
type Obstacle struct {
	Source string // the name of a required source that has not been listed; else empty
	Reason string
}

// String returns the obstacle as GET /readyz shows it.
func (o Obstacle) String() string {
	if o.Source == "" {
		return o.Reason
	}
	return "source " + o.Source + ": " + o.Reason
}

// Disk is the state of the stored records on disk.
type Disk struct {
	Text    string        // how far they are saved
	Folder  string        // store.dataDir
	Err     error         // why saving fails now
	Next    string        // what helps against Err
	Since   time.Time     // since when it fails
	Lag     time.Duration // age of the oldest commit that is not on disk
	Damage  error         // found at the start
	Strange []string      // unknown files, found at the start
}

// The bounds beyond which a state is a finding.
const (
	unansweredFor = time.Minute // of a response to a client
	slowDisk      = 10 * time.Second
	expiresWithin = 7 * 24 * time.Hour
	rotateWithin  = 180 * 24 * time.Hour // before the end of a root
)

// readiness adds the obstacles that no source has, and reports whether there are none at
// all.
func (f *findings) readiness(p Parts, connected int) bool {
	missing := p.Missing()
	for _, o := range missing {
		if o.Source == "" {
			f.add(SeverityError, "readiness", time.Time{}, o.Reason+waiting(connected), "see the log of this process")
		}
	}
	return len(missing) == 0
}

// waiting is the effect of not being ready.
func waiting(connected int) string {
	switch connected {
	case 0:
		return "; no client is served yet"
	case 1:
		return "; 1 connected client waits"
	}
	return fmt.Sprintf("; %d connected clients wait", connected)
}

// process adds a stuck data path, and survived panics.
func (f *findings) process(p Parts) {
	if reason := p.Stuck(); reason != "" {
		f.add(SeverityError, "catalog", time.Time{}, reason, "restart this process, and report its log")
	}
	const report = "report it with the log of this process"
	for _, fault := range p.faults() {
		severity, since := SeverityNotice, fault.Last
		if !fault.Since.IsZero() {
			severity, since = SeverityError, fault.Since
		}
		f.add(severity, fault.part(), since, fault.text(f.now), report)
	}
	for _, o := range p.served() {
		for _, one := range o.Engine.Panics() {
			if one.Count > 0 {
				f.add(SeverityNotice, "output "+o.name, one.Last, fmt.Sprintf("%d panics in a %s, the last one: %s", one.Count, one.Where, one.Text), report)
			}
		}
	}
}

// sources adds the sources that are not live, and the objects that they rejected.
func (f *findings) sources(p Parts, ready bool, connected int) {
	required := map[string]bool{}
	for _, s := range p.Config().Sources {
		required[s.Name] = s.Required
	}
	missing := map[string]bool{}
	for _, o := range p.Missing() {
		missing[o.Source] = true
	}
	for _, supervisor := range p.Sources() {
		s := supervisor.Status()
		about, look := "source "+s.Name, "isthmus sources "+s.Name
		if !s.HeldUntil.IsZero() {
			f.add(SeverityNotice, about, time.Time{}, "held by an operator until "+s.HeldUntil.Format(time.RFC3339)+": nothing that its listings lack is removed", "to end it: isthmus sources release "+s.Name)
		}
		switch s.State {
		case source.StateLive:
		case source.StateListing:
			reason := cmp.Or(s.Reason, "its first listing is not complete")
			switch {
			case missing[s.Name] && !ready && required[s.Name]:
				f.add(SeverityError, about, s.Since, "never listed, so this Isthmus is not ready"+waiting(connected)+": "+reason,
					repair(s.Kind)+"; or set required: false for this source")
			case missing[s.Name] && !ready:
				f.add(SeverityWarning, about, s.Since, "never listed, and not required: serving waits for it for a few seconds after the start"+waiting(connected)+": "+reason,
					"isthmus status --wait; meanwhile "+repair(s.Kind))
			case required[s.Name]:
				f.add(SeverityError, about, s.Since, "never listed, nothing of it is served: "+reason, repair(s.Kind))
			default:
				f.add(SeverityWarning, about, s.Since, "never listed, nothing of it is served: "+reason, repair(s.Kind))
			}
		case source.StateStale:
			f.add(SeverityError, about, s.Since, fmt.Sprintf("the registry cannot be read; %s and %s of its last listing are served: %s",
				count(s.Services, "service"), count(s.Endpoints, "endpoint"), s.Reason), repair(s.Kind)+"; reading is tried again")
		case source.StateHeld:
			if s.Held == 0 && !s.HeldUntil.IsZero() {
				break // the notice above is all
			}
			f.add(SeverityWarning, about, s.Since, fmt.Sprintf("%s held: %s", count(s.Held, "record"), s.Reason),
				"fix the registry; if the records are really gone, isthmus sources release "+s.Name)
		}
		if n := len(s.Rejected); n > 0 {
			first := s.Rejected[0]
			f.add(SeverityWarning, about, time.Time{}, fmt.Sprintf("%s rejected, the first is %s: %s", count(n, "object"), placed(first.Object, first.Where),
				complaint(first.Field, first.Reason)), "fix the object there; "+look+" lists all")
		}
		if n := len(s.Notices); n > 0 {
			first := s.Notices[0]
			f.add(SeverityNotice, about, time.Time{}, fmt.Sprintf("%s, the first is about %s: %s", count(n, "notice"), placed(first.Object, first.Where), first.Text), look+" lists all")
		}
		for _, e := range supervisor.Exchanges() {
			if e.NACK != "" {
				f.add(SeverityWarning, about, time.Time{}, fmt.Sprintf("the newest answer of type %s was NACKed: %s", e.Type, e.NACK), look)
			}
		}
		if kinds := slices.Sorted(maps.Keys(s.Ignored)); len(kinds) > 0 {
			n := 0
			for _, kind := range kinds {
				n += s.Ignored[kind]
			}
			f.add(SeverityNotice, about, time.Time{}, fmt.Sprintf("%s without effect here, of kinds that are not read: %s", count(n, "object"), strings.Join(kinds, ", ")), look)
		}
	}
}

// repair returns the step that makes a registry of a kind readable again.
func repair(kind string) string {
	if kind == "file" {
		return "restore the folder or file, or let the user of this process read it"
	}
	return "fix the registry or the network to it"
}

// placed names an object with its place. A file that cannot be read has a place alone.
func placed(object, where string) string {
	switch {
	case object == "":
		return where
	case where == "":
		return object
	default:
		return object + " at " + where
	}
}

func complaint(field, reason string) string {
	if field == "" {
		return reason
	}
	return field + ": " + reason
}

// findings adds the differences between the configuration file and the configuration in
// use.
func (c Config) findings(f *findings) {
	const about = "configuration"
	for _, problem := range c.Problems {
		f.add(SeverityError, about, time.Time{}, "not reloaded, the one loaded "+age(f.now, c.Loaded)+" ago stays in use: "+problem, "isthmus validate "+c.File)
	}
	if len(c.NeedsRestart) > 0 {
		f.add(SeverityWarning, about, time.Time{}, "the file has changes that a running process cannot take over: "+strings.Join(c.NeedsRestart, ", "), "restart this process")
	}
	for _, l := range c.Leaving {
		if l.Held { // the source itself is held, with its numbers
			continue
		}
		f.add(SeverityNotice, "source "+l.Source, time.Time{}, "not configured any more; its records stay until these are listed: "+strings.Join(l.WaitsFor, ", "), "isthmus sources")
	}
}

// findings adds a disk that does not take the records.
func (d Disk) findings(f *findings) {
	const about = "disk"
	switch {
	case d.Err != nil:
		f.add(SeverityError, about, d.Since, fmt.Sprintf("the last known good is not being saved in %s; serving goes on: %v", d.Folder, d.Err), d.Next+"; saving is tried again")
	case d.Lag > slowDisk:
		f.add(SeverityWarning, about, f.now.Add(-d.Lag), "the disk of "+d.Folder+" is slow or hangs; commits since then are not saved", "look at the disk; do not restart before it answers")
	}
	if d.Damage != nil {
		f.add(SeverityWarning, about, time.Time{}, "at the start: "+d.Damage.Error(), "look at the disk, and keep the files named for a report; Isthmus needs nothing, since it reads the registries anew")
	}
	if len(d.Strange) > 0 {
		f.add(SeverityNotice, about, time.Time{}, fmt.Sprintf("at the start: files of unknown names in %s: %q", d.Folder, d.Strange), "delete them")
	}
}

// certificates adds certificates that cannot be read anew, or that expire.
func (f *findings) certificates(p Parts) {
	for name, r := range p.outputs() {
		certificateFindings(f, "output "+name, r.Certificates)
	}
	certificateFindings(f, "admin", p.Access.Certificates)
}

func certificateFindings(f *findings, about string, k *certs.Keeper) {
	if k == nil {
		return
	}
	broken, fix, renew := "the certificate files cannot be used, those before stay in use: ", "correct the files; they are read anew with each handshake",
		"renew the certificate in its files; they are read anew with each handshake"
	if k.Issued() {
		broken, fix = "the certificate cannot be issued anew, the one before stays in use: ", "see isthmus ca show; it is tried again with each handshake"
		renew = fix
	}
	if err := k.Err(); err != nil {
		f.add(SeverityError, about, time.Time{}, broken+err.Error(), fix)
	}
	switch at := k.Expires(); {
	case at.IsZero():
	case !at.After(f.now):
		f.add(SeverityError, about, at, "the certificate has expired, so clients reject it", renew)
	case !k.Issued() && at.Before(f.now.Add(expiresWithin)):
		f.add(SeverityWarning, about, time.Time{}, "the certificate expires at "+at.UTC().Format(time.RFC3339), renew)
	}
}

// authorityFindings returns a folder that cannot be read, and certificates of the authority that expire.
func authorityFindings(issuer *authority.Issuer, now time.Time) (list []Finding) {
	if issuer == nil {
		return nil
	}
	const about = "authority"
	own := issuer.Authority()
	if fault := issuer.Fault(); fault != nil {
		list = append(list, Finding{
			Severity: SeverityError, About: about, Problem: "its folder cannot be read, and the keys before stay in use: " + fault.Err.Error(),
			Since: fault.Since, Age: age(now, fault.Since), Next: "isthmus ca show --dir " + quoted(own.Dir()) + "; it is read again by itself",
		})
	}
	if until := own.Root().NotAfter; until.Before(now.Add(rotateWithin)) {
		list = append(list, Finding{
			Severity: SeverityWarning, About: about, Problem: "the root expires at " + until.UTC().Format(time.RFC3339) + ", and with it every certificate",
			Next: "isthmus ca rotate begin --dir " + quoted(own.Dir()),
		})
	}
	if finding := issuingFinding(own, now); finding.Problem != "" {
		finding.About, finding.Next = about, "isthmus ca issuer --dir "+quoted(own.Dir())+"; Isthmus takes it within a few seconds"
		list = append(list, finding)
	}
	return list
}

// issuingFinding returns an issuing certificate that expires or is missing; an empty finding if neither.
func issuingFinding(own *authority.Authority, now time.Time) Finding {
	issuing := own.Issuing()
	if issuing == nil {
		return Finding{Severity: SeverityNotice, Problem: "the root signs certificates directly, so its key lies in the folder"}
	}
	soon, atOnce := own.RenewalDue(now)
	at := issuing.NotAfter
	switch {
	case !at.After(now):
		return Finding{Severity: SeverityError, Problem: "the issuing certificate has expired, and with it every certificate", Since: at, Age: age(now, at)}
	case atOnce:
		return Finding{Severity: SeverityError, Problem: "the issuing certificate expires at " + at.UTC().Format(time.RFC3339) + ", and with it every certificate"}
	case soon:
		return Finding{Severity: SeverityWarning, Problem: "the issuing certificate expires at " + at.UTC().Format(time.RFC3339) + ", and with it every certificate"}
	default:
		return Finding{}
	}
}

// identityFindings adds issuers with keys that cannot be read or used, revocations that cannot be
// read, and certificates in files that cannot be used.
func identityFindings(f *findings, all []interface{ Problems() []identity.Problem }) {
	for _, of := range all {
		for _, problem := range of.Problems() {
			severity := SeverityError
			if problem.Since.IsZero() {
				severity = SeverityWarning
			}
			f.add(severity, "identity", problem.Since, problem.About+": "+problem.Reason, problem.Next)
		}
	}
}

// writerFindings adds an output that does not write, and the objects that it cannot write.
func writerFindings(f *findings, name string, w *output.Writer) {
	about := "output " + name
	const look = "isthmus writers"
	switch w.State {
	case output.WriterStale:
		f.add(SeverityError, about, w.Since, w.Reason, "fix the API server or the rights there; it is tried again")
	case output.WriterWaiting:
		f.add(SeverityWarning, about, w.Since, "nothing is written yet: "+w.Reason, "as the reason says; isthmus sources shows what is not listed")
	}
	if n := len(w.Failed); n > 0 {
		first := slices.MinFunc(w.Failed, func(a, b output.WriteFailure) int { return a.Since.Compare(b.Since) })
		f.add(SeverityError, about, first.Since, fmt.Sprintf("%s cannot be written, the first is %s: %s", count(n, "object"), first.Object, first.Reason), look)
	}
	if n := len(w.Held); n > 0 {
		f.add(SeverityWarning, about, time.Time{}, fmt.Sprintf("%s left as they are though they should change, the first is %s: %s", count(n, "object"), w.Held[0].Object, w.Held[0].Reason), look)
	}
	if n := len(w.LeftOut); n > 0 {
		f.add(SeverityNotice, about, time.Time{}, fmt.Sprintf("%s not written in full, the first is %s: %s", count(n, "object"), w.LeftOut[0].Object, w.LeftOut[0].Reason), look)
	}
}

// complaints are the clients that complain of one type in the same way.
type complaints struct {
	first push.ClientStatus
	since time.Time
	text  string
	n     int
}

// clientFindings adds the clients that NACK or do not answer, a finding for each type of
// resource.
func clientFindings(f *findings, output string, list []push.ClientStatus) {
	type key struct {
		name  string
		state session.Phase
	}
	found := map[key]*complaints{}
	for _, c := range list {
		for _, t := range c.Types {
			if t.State != session.NACKed && (t.State != session.Waiting || f.now.Sub(t.Since) < unansweredFor) {
				continue
			}
			at := key{t.Type, t.State}
			one := found[at]
			if one == nil {
				one = &complaints{}
				found[at] = one
			}
			if one.n++; one.n == 1 || t.Since.Before(one.since) {
				one.first, one.since, one.text = c, t.Since, t.Reason
			}
		}
	}
	for at, one := range found {
		verb, next := "NACKed", "isthmus clients "+quoted(one.first.ID)
		if at.state == session.Waiting {
			verb, next = "not answered", "look at the client, or restart it; "+next+" shows what it has"
		}
		f.add(SeverityError, "output "+output, one.since,
			fmt.Sprintf("resources of type %s are %s by %s, which works with older ones; the first is %s: %s", at.name, verb, count(one.n, "client"), one.first.ID, one.text),
			next)
	}
}

// quoted makes one word of a shell of a client's text, which may be hostile: operators copy
// commands.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// conflictFindings adds the services about which sources contradict each other.
func conflictFindings(f *findings, snapshot *catalog.Snapshot) {
	n, first, host := 0, "", ""
	for service := range snapshot.Services() {
		if len(service.Conflicts) == 0 {
			continue
		}
		if n++; n == 1 {
			c := service.Conflicts[0]
			host = service.Key.Host
			first = fmt.Sprintf("%s: of %s, %s is used and not %s", service.Key.Host, c.Field, c.Kept, c.Lost)
		}
	}
	if n > 0 {
		f.add(SeverityNotice, "catalog", time.Time{}, fmt.Sprintf("registries contradict each other about %s, the first is %s", count(n, "service"), first),
			"make the registries agree, or let the order of sources or owns decide; isthmus services "+quoted(host))
	}
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
