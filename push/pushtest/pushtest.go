// Package pushtest is the suite that every producer of package push must pass,
// whatever its resources are.
//
// [Run] draws histories: an engine serves the producer that is added, beside it
// one that behaves and one whose code panics. Clients of every kind come, ask by
// name, for what something brings and for everything, in either mode of each type, read late, answer late
// or never, NACK what they like, leave, and come back with what they hold. Sinks say
// with each answer in which mode they take the next one, and of some histories, which
// have no other clients, each message is bounded.
// Meanwhile the worlds change. Of each response, and whenever everything is at
// rest, the suite checks the laws of docs/architecture.md by number, as far as
// they concern an engine: see [law].
//
// The suite uses the exported names of package push alone, and knows of the producer
// only its [Addition]. A failure may be a fault of the producer as well as of the
// engine: a change that it does not list, an audience that is too small, a slot that
// two variants share.
//
// [Flat] counts what a change costs among many clients.
//
// Histories run on the clock of testing/synctest and on one goroutine beside the
// engine's own, so rapid makes a failing one smaller.
package pushtest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push"
)

// Addition describes a producer to the suite.
type Addition struct {
	// Rows are the producer's table of types. The suite takes out debounces, for
	// they would change the order of types.
	Rows []push.TypeSpec
	// Order is that of delivery, as in [push.Config].
	Order []string
	// Begin returns a world at its beginning, for one history.
	Begin func() World
	// Client draws a client that may ask for the types.
	Client func(t *rapid.T) push.Client
	// Name draws a name of a type that a client may ask for, whether it stands for
	// anything or not. From few enough that they meet.
	Name func(t *rapid.T, r push.Row) string
	// Refers lists the names of resources of another type that a client reads in
	// the body of one. Nil if no resource refers to any.
	Refers func(r push.Row, body []byte, to string) []string
	// Take returns what a client has of a resource, as [World].Sees has it, once it has
	// taken what it was sent of that. Before is what it had; zero if nothing. Nil if
	// resources are sent as they are seen.
	Take func(r push.Row, before, sent push.Encoded) (push.Encoded, error)
	// Excludes reports whether a client NACKs a response after which it would have two
	// resources of an [push.TypeSpec].Exclusive type with these bodies. Of such a response
	// it applies nothing. Nil if there are no such types.
	Excludes func(r push.Row, a, b []byte) bool
	// Beside are producers that refer to the types of this one, or that it refers
	// to. The suite uses neither their Client nor their Beside.
	Beside []Addition
}

// World is what an addition serves during one history.
type World interface {
	// Step changes it at random and returns what the producer publishes of that.
	// The first is what it begins with.
	Step(t *rapid.T) push.Update
	// Sees returns the resources of a type that a client sees now, by name. It works
	// them out anew, without the help of what Step returned.
	Sees(r push.Row, c push.Client) map[string]push.Encoded
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

// Find returns how an addition breaks a law in one of so many histories; empty if it
// does not. It is for additions that are at fault.
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

// diaryLines bounds what is shown of a history.
const diaryLines = 200

// log notes what happened, for people.
func (h *history) log(format string, args ...any) {
	if h.diary = append(h.diary, fmt.Sprintf(format, args...)); len(h.diary) > diaryLines {
		h.diary = h.diary[1:]
	}
}

// try runs one history. A panic inside of the bubble is passed on after the engine
// has ended, where rapid sees it.
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
