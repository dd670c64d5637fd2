package machines

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Cloud has machines.
type Cloud interface {
	// Groups returns the machines that a service is found at. Errors are of the form
	// "field: reason", joined by [errors.Join].
	Groups(s Service) ([]Group, error)
	// Round returns what reads groups once. What several of them need is asked for once.
	Round() Reader
}

// Reader reads groups. It is used by several goroutines at once.
type Reader interface {
	// Read returns all machines of a group, or why they cannot be read: [ErrGone],
	// [Throttled], or anything else.
	Read(ctx context.Context, g Group) ([]Machine, error)
}

// Group are machines that are read as one.
type Group struct {
	// Scope is what the cloud counts requests by, such as a subscription.
	Scope string
	// Resource is a machine or a set of machines, as the cloud names it.
	Resource string
	// Tags are those that the machines of the scope have, if no resource is named.
	Tags Tags
}

// Compare orders groups.
func (g Group) Compare(o Group) int {
	return cmp.Or(cmp.Compare(g.Scope, o.Scope), cmp.Compare(g.Resource, o.Resource), cmp.Compare(g.Tags, o.Tags))
}

// String is for people.
func (g Group) String() string {
	if g.Resource != "" {
		return g.Resource
	}
	return fmt.Sprintf("machines of %s with the tags %s", g.Scope, string(g.Tags))
}

// Tags are some tags, in a form that can be compared.
type Tags string

// TagsOf returns tags.
func TagsOf(tags map[string]string) Tags {
	text, err := json.Marshal(tags) // sorted
	if err != nil {
		return "" // which strings do not give rise to
	}
	return Tags(text)
}

// All returns the tags.
func (t Tags) All() map[string]string {
	all := map[string]string{}
	if json.Unmarshal([]byte(t), &all) != nil {
		return nil // nothing that TagsOf has written
	}
	return all
}

// ErrGone is of a group that the cloud denies by its name.
var ErrGone = errors.New("the cloud has no such resource")

// Throttled is of a cloud that wants to be asked later.
type Throttled struct {
	After time.Duration // zero if it does not say
	Err   error
}

func (t *Throttled) Error() string { return t.Err.Error() }

func (t *Throttled) Unwrap() error { return t.Err }

// Pauses after a cloud has asked for one.
const (
	// UsualPause is that of a cloud that does not say how long.
	UsualPause = time.Minute
	// LongestPause is how long a cloud can keep Isthmus from asking again.
	LongestPause = time.Hour
)

// pause is how long nothing is asked.
func (t *Throttled) pause() time.Duration {
	if t.After <= 0 {
		return UsualPause
	}
	return min(t.After, LongestPause)
}
