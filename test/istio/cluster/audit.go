package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// auditPolicy has all that is written to Istio's objects recorded, when it is asked
// for and when it was answered, and what came of it.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
  resources: [{group: networking.istio.io}]
- level: None
`

// Write is a request that was to change objects, and was answered.
type Write struct {
	Verb        string // create, update, patch, delete or deletecollection
	User        string
	Resource    string // such as serviceentries
	Subresource string // such as status, to which istiod writes
	Namespace   string
	Name        string
	Status      int // as of HTTP
	At          time.Time
}

// Changed is whether the request was accepted.
func (w Write) Changed() bool { return w.Status < 300 }

// Writes are the writes to Istio's objects in a namespace, in the order of
// their answers. They survive the server.
//
// What a write makes of an object can be read before the log says that the write was
// answered. That it was asked for is in the log before. So those that are without an
// answer are waited for, as long as the server runs.
func (a *APIServer) Writes(namespace string) ([]Write, error) {
	log, err := a.readAudit(namespace)
	if err != nil {
		return nil, err
	}
	again, late := time.NewTicker(2*time.Millisecond), time.After(until.Patience)
	defer again.Stop()
	for awaited := log.asked; a.Running() && anyOf(awaited, log.asked); {
		select {
		case <-again.C:
		case <-late:
			return nil, fmt.Errorf("a write in %s was not answered within %s", namespace, until.Patience)
		}
		if log, err = a.readAudit(namespace); err != nil {
			return nil, err
		}
	}
	return log.writes, nil
}

// audited is what the log has of a namespace.
type audited struct {
	writes []Write
	asked  map[string]bool // those without an answer, by audit ID
}

func anyOf(these, all map[string]bool) bool {
	for id := range these {
		if all[id] {
			return true
		}
	}
	return false
}

func (a *APIServer) readAudit(namespace string) (audited, error) {
	text, err := os.ReadFile(a.file(auditLog))
	if err != nil {
		return audited{}, err
	}
	log, at, name := audited{asked: map[string]bool{}}, int64(0), fmt.Appendf(nil, `"namespace":%q`, namespace)
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		at += int64(len(line))
		if !bytes.Contains(line, name) {
			continue // most are of other tests
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return audited{}, fmt.Errorf("a line of the audit log: %w", err)
		}
		if e.ObjectRef.Namespace == namespace {
			log.enter(&e, at > a.loggedBefore)
		}
	}
	return log, nil
}

// enter enters an event. What was asked of a server that was killed is never answered.
func (l *audited) enter(e *auditEvent, runs bool) {
	if e.Stage == "RequestReceived" {
		if runs {
			l.asked[e.AuditID] = true
		}
		return
	}
	delete(l.asked, e.AuditID)
	l.writes = append(l.writes, e.write())
}

// auditEvent is as much of audit.k8s.io/v1's Event as is needed.
type auditEvent struct {
	AuditID, Stage   string
	Verb             string
	User             struct{ Username string }
	ImpersonatedUser *struct{ Username string }
	ObjectRef        struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus   struct{ Code int }
	StageTimestamp   time.Time
}

func (e *auditEvent) write() Write {
	user := e.User.Username
	if e.ImpersonatedUser != nil {
		user = e.ImpersonatedUser.Username
	}
	return Write{
		Verb: e.Verb, User: user, Status: e.ResponseStatus.Code, At: e.StageTimestamp,
		Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
	}
}
