// Package pushtest is the suite that every producer of package push must pass, with any
// kind of resources.
//
// [Run] draws histories. An engine serves the added producer, and beside it a correct one
// and one with code that panics. Clients of every kind connect. They ask by name, for the
// resources that a resource brings and for everything, in either mode of each type. They
// read late, answer late or never, NACK at random, leave, and come back with the resources
// that they hold. Sinks choose with each answer the mode in which they take the next
// response. In some histories all clients are sinks and the size of messages is bounded.
// Meanwhile the worlds change. For each response, and whenever everything is at rest, the
// suite checks the laws of docs/architecture.md by number, as far as they concern an
// engine: see [law].
//
// The suite uses the exported names of package push alone, and knows of the producer only
// its [Addition]. A failure may be a fault of the producer as well as of the engine: an
// unlisted change, an audience that is too small, a slot that two variants share.
//
// [Flat] counts the cost of a change among many clients.
//
// Histories run on the clock of testing/synctest and on one goroutine beside the engine's
// own, so rapid can shrink a failing one.
package pushtest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Addition describes a producer to the suite.
type Addition struct {
	// Rows are the producer's table of types. The suite removes debounces, because they would
	// change the order of types.
	Rows []world.TypeSpec
	// Order is the order of delivery, as in [push.Config].
	Order []string
	// Begin returns a world at its beginning, for one history.
	Begin func() World
	// Client draws a client that may ask for the types.
	Client func(t *rapid.T) world.Client
	// Name draws a name of a type that a client may ask for, whether or not it exists. The
	// names are few enough that they collide.
	Name func(t *rapid.T, r world.Row) string
	// Refers lists the names of resources of another type that a client reads in the body of a
	// resource. Nil if no resource refers to another.
	Refers func(r world.Row, body []byte, to string) []string
	// Take returns a client's new state of a resource, in the form of [World].Sees, after a
	// sent version. Before is the previous state; zero if there is none. Nil if resources are
	// sent in the form of Sees.
	Take func(r world.Row, before, sent world.Encoded) (world.Encoded, error)
	// Excludes reports whether a client NACKs a response after which it would have two
	// resources of an [world.TypeSpec].Exclusive type with these bodies. It applies nothing of
	// such a response. Nil if there are no such types.
	Excludes func(r world.Row, a, b []byte) bool
	// Beside are producers that refer to the types of this one, or that it refers
	// to. The suite uses neither their Client nor their Beside.
	Beside []Addition
}

// World is the state that an addition serves during one history.
type World interface {
	// Step changes the world at random and returns the update that the producer publishes. The
	// first update is the initial state.
	Step(t *rapid.T) world.Update
	// Sees returns the resources of a type that a client sees now, by name. It computes them
	// anew, without using the results of Step.
	Sees(r world.Row, c world.Client) map[string]world.Encoded
}

// Run checks an addition.
func Run(t *testing.T, a Addition) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		if err := a.try(t, rt); err != nil {
			rt.Fatal(err)
		}
	})
}

// Find returns how an addition breaks a law in one of so many histories; empty if it does
// not. It is for additions with a known fault.
func Find(t *testing.T, a Addition, histories int) string {
	t.Helper()
	one := rapid.Custom(func(rt *rapid.T) string {
		if err := a.try(t, rt); err != nil {
			return err.Error()
		}
		return ""
	})
	for seed := range histories {
		if broken := one.Example(seed); broken != "" {
			return broken
		}
	}
	return ""
}

// law is a law of docs/architecture.md by its number, as it applies to an engine.
type law string

const (
	primed    law = "law 3: nothing is served before it is primed"
	lost      law = "law 5: a client ends with exactly its view"
	resent    law = "law 5: nothing is resent"
	order     law = "law 5: what refers to something comes after it, and leaves before it"
	stale     law = "law 5: what is sent is of the newest world"
	contained law = "law 6: a bad object poisons only itself"
	bounded   law = "law 7: every queue has a bound"
	brought   law = "law 5: what a client waits for is sent right behind"
)

// violation is thrown where a law is broken, with the last events of the history.
type violation struct {
	law
	text  string
	after []string
}

func (v *violation) Error() string {
	return string(v.law) + ": " + v.text + "; what happened:\n\t" + strings.Join(v.after, "\n\t")
}

func (h *history) violated(l law, format string, args ...any) {
	panic(&violation{l, fmt.Sprintf(format, args...), h.diary})
}

// diaryLines bounds the displayed lines of a history.
const diaryLines = 200

// log records an event of the history, for display.
func (h *history) log(format string, args ...any) {
	if h.diary = append(h.diary, fmt.Sprintf(format, args...)); len(h.diary) > diaryLines {
		h.diary = h.diary[1:]
	}
}

// try runs one history. A panic inside of the bubble is passed on after the engine has
// ended, where rapid sees it.
func (a Addition) try(t *testing.T, rt *rapid.T) error {
	t.Helper()
	var thrown any
	synctest.Test(t, func(*testing.T) {
		defer func() { thrown = recover() }()
		h := newHistory(rt, a)
		defer h.stop()
		h.run()
	})
	if v, ok := thrown.(*violation); ok {
		return v
	}
	if thrown != nil {
		panic(thrown)
	}
	return nil
}
