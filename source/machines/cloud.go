package machines

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Cloud finds the machines of services and reads them.
type Cloud interface {
	// Groups returns the machines that serve a service. Errors are of the form
	// "field: reason", joined by [errors.Join].
	Groups(s Service) ([]Group, error)
	// Round returns a reader for one round. The reader requests a list that several
	// groups need only once.
	Round() Reader
}

// Reader reads groups. Several goroutines use a reader at once.
type Reader interface {
	// Read returns all machines of a group, or the reason why they cannot be read:
	// [ErrGone], [Throttled], or any other error.
	Read(ctx context.Context, g Group) ([]Machine, error)
}

// Group is a set of machines that is read as one.
type Group struct {
	// Scope is the unit by which the cloud counts requests, such as a subscription.
	Scope string
	// Resource is a machine or a set of machines, as the cloud names it.
	Resource string
	// Tags selects the machines of the scope, if no resource is named.
	Tags Tags
}

// Compare orders groups.
func (g Group) Compare(o Group) int {
	return cmp.Or(cmp.Compare(g.Scope, o.Scope), cmp.Compare(g.Resource, o.Resource), cmp.Compare(g.Tags, o.Tags))
}

// String returns the group as text for people.
func (g Group) String() string {
	if g.Resource != "" {
		return g.Resource
	}
	return fmt.Sprintf("machines of %s with the tags %s", g.Scope, string(g.Tags))
}

// Tags holds tags in a comparable form.
type Tags string

// TagsOf returns tags in comparable form.
func TagsOf(tags map[string]string) Tags {
	text, err := json.Marshal(tags) // sorted
	if err != nil {
		return "" // unreachable: strings always encode
	}
	return Tags(text)
}

// All returns the tags.
func (t Tags) All() map[string]string {
	all := map[string]string{}
	if json.Unmarshal([]byte(t), &all) != nil {
		return nil // not written by TagsOf
	}
	return all
}

// ErrGone reports that the cloud has no group of this name.
var ErrGone = errors.New("the cloud has no such resource")

// Throttled reports that the cloud asks for a pause.
type Throttled struct {
	After time.Duration // zero if the cloud names none
	Err   error
}

func (t *Throttled) Error() string { return t.Err.Error() }

func (t *Throttled) Unwrap() error { return t.Err }

// Pauses after a cloud has asked for one.
const (
	// UsualPause applies if the cloud does not name a duration.
	UsualPause = time.Minute
	// LongestPause bounds the pause that a cloud can ask for.
	LongestPause = time.Hour
)

// pause returns the duration without requests.
func (t *Throttled) pause() time.Duration {
	if t.After <= 0 {
		return UsualPause
	}
	return min(t.After, LongestPause)
}
