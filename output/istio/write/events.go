package write

import (
	"errors"
	"sync"
	"time"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/kubeevents"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
)

// The reasons of Kubernetes Events about existing objects.
const (
	reasonNameTaken = "NameTaken"     // the object of another owner blocks a creation
	reasonConflict  = "Conflict"      // another writer keeps changing the object
	reasonRejected  = "WriteRejected" // the API server, or its webhook, rejects a change
	reasonHeld      = "Held"          // the loss of endpoints is suspicious
	reasonHostTaken = "HostTaken"     // the object of another owner is for a host that an object would be written for
	reasonUpToDate  = "UpToDate"      // none of these any more
)

// about returns an object as Events name it.
func about(r object.Ref) kubeevents.Object {
	return kubeevents.Object{Group: convert.Group, Resource: r.Kind.Resource(), Kind: string(r.Kind), Namespace: r.Namespace, Name: r.Name}
}

// Troubles writes Events about objects that are not written as planned.
type Troubles struct {
	events  *kubeevents.Recorder
	written *Written

	mu     sync.Mutex
	others map[object.Key]object.Ref // by key, the object of another owner that takes its host
}

// Taken writes an Event about the object of another owner that takes the host of a key. The
// zero value means that none does, or no longer.
func (t *Troubles) Taken(key object.Key, by object.Ref, reason string) {
	t.mu.Lock()
	was := t.others[key]
	delete(t.others, key)
	if by != (object.Ref{}) {
		t.others[key] = by
	}
	t.mu.Unlock()
	if was != by && was != (object.Ref{}) {
		t.events.Clear(kubeevents.Event{Object: about(was), Reason: reasonUpToDate, Message: key.String() + " does not need its host any more", Old: true})
	}
	if by != (object.Ref{}) {
		t.warn(by, reasonHostTaken, key.String()+" is not written: "+reason)
	}
}

// warn writes an Event about an object that is not written, if it exists. Another replica may
// have written an equal one.
func (t *Troubles) warn(r object.Ref, reason, message string) {
	t.events.Warn(kubeevents.Event{Object: about(r), Reason: reason, Message: message, Old: true})
}

// report writes an Event about the outcome of an action, if the outcome is a new one. An
// object that waits for the first listing of its source has none.
func (t *Troubles) report(a plan.Action, err error) {
	switch {
	case errors.As(err, new(*Clash)):
		t.warn(a.Ref, reasonNameTaken, err.Error())
	case errors.As(err, new(*conflict)):
		t.warn(a.Ref, reasonConflict, err.Error())
	case err != nil:
		if !passes(err) {
			t.warn(a.Ref, reasonRejected, err.Error())
		}
	case a.Wait.Reason == "":
		if wait, _ := t.written.inConflict(a.Ref, time.Now()); wait <= 0 {
			t.events.Clear(kubeevents.Event{Object: about(a.Ref), Reason: reasonUpToDate, Message: "it is up to date again", Old: true})
		}
	case !a.Wait.Since.IsZero():
		t.warn(a.Ref, reasonHeld, "it is not reduced or deleted: its source suspiciously lacks records; see isthmus sources, and run isthmus sources release to confirm the loss")
	}
}

// Forget drops the known trouble of a key without objects. As with the records of writes, it
// is that of the first object.
func (t *Troubles) Forget(key object.Key) { t.events.Forget(about(firstOf(key))) }
