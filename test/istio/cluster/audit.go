package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// auditPolicy has all that is written to Istio's objects recorded, and what
// came of it.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
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
func (a *APIServer) Writes(namespace string) ([]Write, error) {
	text, err := os.ReadFile(a.file("audit.log"))
	if err != nil {
		return nil, err
	}
	var writes []Write
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("a line of the audit log: %w", err)
		}
		if e.ObjectRef.Namespace == namespace {
			writes = append(writes, e.write())
		}
	}
	return writes, nil
}

// auditEvent is as much of audit.k8s.io/v1's Event as is needed.
type auditEvent struct {
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
