package admin

import (
	"net/http"
	"time"
)

// Writer is an output that writes into another system, as GET /api/v1/writers
// shows it.
type Writer struct {
	Name string `json:"name"`
	// State is writing, standby, waiting (for what must be known first) or stale
	// (the system cannot be reached).
	State  string `json:"state"`
	Reason string `json:"reason"` // of the state
	Age    string `json:"age"`    // of being stale
	Leader string `json:"leader"` // the replica that writes; empty without an election
	// Objects counts those of ours in the system.
	Objects int `json:"objects"`
	// Pending counts what is not known to be in order, and PendingAge is how long
	// the first of it has not been.
	Pending    int       `json:"pending"`
	PendingAge string    `json:"pendingAge"`
	LastWrite  time.Time `json:"lastWrite,omitzero"`
	// Writes counts by verb: create, update, delete. Drift counts what was restored
	// after others had changed it.
	Writes map[string]uint64 `json:"writes"`
	Drift  uint64            `json:"drift"`
	Failed []WriteFailure    `json:"failed"`
	Held   []HeldObject      `json:"held"`
	// LeftOut is what of a service could not be written.
	LeftOut []Omission `json:"leftOut"`
}

// The states of a writer.
const (
	WriterWriting = "writing"
	WriterStandby = "standby"
	WriterWaiting = "waiting"
	WriterStale   = "stale"
)

// WriteFailure is something that could not be written.
type WriteFailure struct {
	Object string    `json:"object"` // "ServiceEntry default/reviews.example.com"
	Reason string    `json:"reason"` // of the last try, with what to do
	Tries  int       `json:"tries"`
	Since  time.Time `json:"since"`
	Age    string    `json:"age"`
	Next   time.Time `json:"next,omitzero"` // when it is tried again
}

// HeldObject is an object that is left as it is though it should change.
type HeldObject struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
	// Endpoints counts those that it would lose since its source did not list them,
	// and Age is how long that has been known.
	Endpoints int    `json:"endpoints,omitempty"`
	Age       string `json:"age,omitempty"`
}

// Omission says that something of a service is not written.
type Omission struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
	Count  int    `json:"count"` // of endpoints; zero for the whole service
}

func (s *Server) writers(w http.ResponseWriter, _ *http.Request) {
	list := []Writer{}
	if s.parts.Writers != nil {
		list = append(list, s.parts.Writers()...)
	}
	s.reply(w, list)
}
