package servicecenter

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// ReadBody reads an answer of at most so many bytes.
var ReadBody = readBody

// Registered is a service with its instances, as a registry has them.
type Registered struct {
	Environment string        `json:"environment"`
	App         string        `json:"appId"`
	Service     string        `json:"serviceName"`
	Version     string        `json:"version"`
	Instances   []Instance    `json:"instances"`
	Before      model.Service `json:"-"` // its record so far
}

// withDefaults gives the fields that are zero their defaults, so that a test
// names those only which it is about.
func (c Config) withDefaults() Config {
	into, from := reflect.ValueOf(&c).Elem(), reflect.ValueOf(DefaultConfig())
	for i := range into.NumField() {
		if into.Field(i).IsZero() {
			into.Field(i).Set(from.Field(i))
		}
	}
	return c
}

// WithDefaults is the same for tests outside of the package.
func WithDefaults(c Config) Config { return c.withDefaults() }

// Convert is what becomes of services at a time.
func Convert(c Config, services []Registered, now time.Time) (source.Listing, error) {
	c = c.withDefaults()
	n, err := newNaming(c)
	if err != nil {
		return source.Listing{}, err
	}
	rules, err := c.rules()
	if err != nil {
		return source.Listing{}, err
	}
	identity := func(r Registered) Identity { return Identity{c.Project, r.Environment, r.App, r.Service, r.Version} }
	var all []Identity
	for _, r := range services {
		all = append(all, identity(r))
	}
	called := n.assign(all)
	out := source.Listing{Ignored: map[string]int{}}
	for _, i := range called.sorted() {
		at := slices.IndexFunc(services, func(r Registered) bool { return identity(r) == i })
		if reason := called.rejected[i]; reason != "" {
			out.Rejected = append(out.Rejected, rejection(i, reason))
			continue
		}
		r := services[at]
		made := convert(i, called.of[i], r.Instances, knownPorts(r.Before), rules, now)
		out.Objects = append(out.Objects, made.object)
		out.Rejected = append(out.Rejected, made.rejected...)
		if made.left > 0 {
			out.Ignored[ignoredProperties] += made.left
		}
	}
	return out, nil
}

// DialWith has the source open its connections in another way.
func (s *Source) DialWith(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	s.dial = dial
}

// What plans and reads is tested by itself.
type (
	Ask      = ask
	Attempts = attempts
)

func NewAsk(k Key, rev string) Ask { return ask{k, rev} }

func Chunks(asks []Ask, bytes, keys int) []chunk { return chunks(asks, bytes, keys) }

func (c chunk) Asks() []Ask  { return c.asks }
func (c chunk) Body() []byte { return c.body }

func NextRound(poll, took time.Duration, changed, everything bool, random float64) time.Duration {
	return nextRound(poll, took, changed, everything, random)
}

// Try makes a login that fails, if it may be made.
func (a *attempts) Try(password []byte, now time.Time) bool {
	if a.wait(password, now) > 0 {
		return false
	}
	a.begin(password, now)
	return true
}

// DecodeAll reads bytes as every answer there is, and converts the instances it
// finds. It returns how many of n keys are answered.
func DecodeAll(body []byte, n int, now time.Time) (int, error) {
	_, _ = decodeList(body)
	_, _ = decodeGraph(body, true)
	_, _ = decodeEvent(body)
	_ = rejectedWith(400, body).Error()
	answers, err := decodeFound(body, n)
	for _, f := range answers {
		convert(Identity{App: "a", Service: "s"}, name{"n", "s"}, f.instances, nil, rules{}, now)
	}
	return len(answers), err
}

// DecodeFound reads the answer of a find of n keys.
func DecodeFound(body []byte, n int) error {
	_, err := decodeFound(body, n)
	return err
}

// Roll reads lists, one after the other.
type Roll struct{ roll }

// Read says what a list has, and how many of its entries make no sense.
func (r *Roll) Read(body []byte) (services []string, broken int, err error) {
	return shown(r.read(body))
}

// ReadAlone is Read without regard to any other list.
func ReadAlone(body []byte) (services []string, broken int, err error) {
	return shown(decodeList(body))
}

func shown(a listAnswer, err error) ([]string, int, error) {
	var all []string
	for _, l := range a.services {
		all = append(all, fmt.Sprintf("%+v", l))
	}
	slices.Sort(all)
	return all, a.broken, err
}

// Decode is Read for its cost alone.
func (r *Roll) Decode(body []byte) error {
	_, err := r.read(body)
	return err
}

// Decode is ReadAlone for its cost alone.
func Decode(body []byte) error {
	_, err := decodeList(body)
	return err
}

// EntryEnd is where the first of some values ends.
func EntryEnd(text []byte) int { return entryEnd(text) }

// Assigner names services, each time anew.
func Assigner(c Config, services []Registered) (func(), error) {
	n, err := newNaming(c.withDefaults())
	if err != nil {
		return nil, err
	}
	var all []Identity
	for _, r := range services {
		all = append(all, Identity{"default", r.Environment, r.App, r.Service, r.Version})
	}
	return func() { n.assign(all) }, nil
}

// Summary says what the answer to a find of n keys says of each.
func Summary(body []byte, n int) (all []string) {
	answers, err := decodeFound(body, n)
	if err != nil {
		return []string{"error: " + err.Error()}
	}
	for _, f := range answers {
		switch {
		case denied(f.err):
			all = append(all, "denied")
		case f.err != nil:
			all = append(all, f.err.Error())
		case f.same:
			all = append(all, "same")
		default:
			all = append(all, fmt.Sprintf("%d instances", len(f.instances)))
		}
	}
	return all
}
