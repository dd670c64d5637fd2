package output

import "context"

// Planner is an output that can say what it would write.
type Planner interface {
	// Plan compares what was published last with the system that is written to, and
	// returns what would be done, in the order of the objects. It writes nothing. It
	// takes the place of [Output.Run].
	Plan(ctx context.Context) (Plan, error)
}

// Plan is what would be written.
type Plan struct {
	Actions []Action
	LeftOut []Omission
	// Rights are those that the writing needs.
	Rights Rights
}

// Action is what would be done to one object.
type Action struct {
	Verb   Verb   `json:"verb"`
	Object string `json:"object"` // "ServiceEntry shop/reviews.example.com"
	Reason string `json:"reason"`
	// HandOver is what would be done to an object that is left, once whose it is was
	// handed over; empty if that is not known.
	HandOver Verb     `json:"handOver,omitempty"`
	Diff     []string `json:"diff"` // of the specification, all of it
}

// Verb is what is done to an object.
type Verb string

// The verbs. Leave says that an object stays as it is though it should change.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
	Leave  Verb = "leave"
)
