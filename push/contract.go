package push

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// The contract between producers and the engine.
type (
	// World is one immutable state of everything a producer serves.
	World = world.World
	// View identifies the resources of a type that a client may see.
	View = world.View
	// Subject is the data that a named resource is made of.
	Subject = world.Subject
	// Referrer is a subject that refers to others.
	Referrer = world.Referrer
	// Incremental is a subject that is sent as the difference from a revision.
	Incremental = world.Incremental
	// Unrepeatable is a subject that is encoded anew for each message.
	Unrepeatable = world.Unrepeatable
	// Encoded is the content of a resource.
	Encoded = world.Encoded
	// Fragments are the end of a resource's content, in pieces that resources share.
	Fragments = world.Fragments
	// Resource is an encoded resource.
	Resource = world.Resource
	// Version is a hash of content: equal on every replica and after every restart.
	Version = world.Version
	// Update is a step from one world to the next.
	Update = world.Update
	// Changed names a resource that may differ from the previous world.
	Changed = world.Changed
	// Panic describes the panics of one place.
	Panic = world.Panic
)

// The table of a producer's types.
type (
	// Type is a resource type of an engine. See [Producer.Type].
	Type = world.Type
	// Row is the index of a resource type in its producer's table.
	Row = world.Row
	// TypeSpec is one row of a producer's table.
	TypeSpec = world.TypeSpec
	// NameDebounce delays changes of some resources of a type by themselves.
	NameDebounce = world.NameDebounce
	// Debounce delays changes so that a burst becomes one.
	Debounce = world.Debounce
	// Absence is the answer to a client that asks for a name which does not exist.
	Absence = world.Absence
	// Mode is how a subscriber takes the resources of a type.
	Mode = world.Mode
)

// A client, as far as its views depend on it.
type (
	// Client describes a subscriber.
	Client = world.Client
	// Proxy describes a proxy in the path of workloads.
	Proxy = world.Proxy
	// Bind is the address at which a proxy listens for its workload, and the workload's own.
	Bind = world.Bind
	// Ports is a set of ports.
	Ports = world.Ports
)

// The messages between a subscriber and its stream.
type (
	// Request is a subscriber's message about one type.
	Request = session.Request
	// Answer is a subscriber's answer to a response.
	Answer = session.Answer
	// AnswerKind distinguishes an ACK, a NACK and neither.
	AnswerKind = session.AnswerKind
	// Wildcard starts, keeps or ends a subscription to everything.
	Wildcard = session.Wildcard
	// Response is a message to a subscriber.
	Response = session.Response
)

// The answers to a response.
const (
	NoAnswer = session.NoAnswer
	ACK      = session.ACK
	NACK     = session.NACK
)

// The changes of a wildcard.
const (
	WildcardKeep = session.WildcardKeep
	WildcardOn   = session.WildcardOn
	WildcardOff  = session.WildcardOff
)

// The status of a subscriber.
type (
	// TypeStatus is the status of a type for a subscriber.
	TypeStatus = session.TypeStatus
	// ResourceStatus is the state of one resource for a subscriber.
	ResourceStatus = session.ResourceStatus
	// State is a subscriber's state of a type or resource.
	State = session.Phase
)

// The states of a type or resource.
const (
	ACKed   = session.ACKed
	Waiting = session.Waiting
	NACKed  = session.NACKed
	Idle    = session.Idle
)

// Unknown is the claim of a WholeState subscriber that cannot name its version. The full
// set waits until every source has been listed.
func Unknown() *Version { return session.Unknown() }

// The answers to a client that asks for a name which does not exist.
const (
	Removal = world.Removal
	Empty   = world.Empty
	Silence = world.Silence
)

// The modes in which a subscriber takes the resources of a type.
const (
	WholeState = world.WholeState
	Delta      = world.Delta

	modes = world.Modes
)

// The places of a panic.
const (
	PanicResource = world.PanicResource
	PanicStream   = world.PanicStream
	PanicStep     = world.PanicStep
)

// FirstUnprivilegedPort is the first of the ports that any program may bind.
const FirstUnprivilegedPort = world.FirstUnprivilegedPort

// VersionOf hashes content given in parts. The boundaries between the parts matter.
func VersionOf(parts ...[]byte) Version { return world.VersionOf(parts...) }

// ParseVersion parses the form of a version's String; ok is false for any other text.
func ParseVersion(s string) (v Version, ok bool) { return world.ParseVersion(s) }

// VersionOfSet returns the version of a set of resources, in any order.
func VersionOfSet(resources iter.Seq2[string, Version]) Version { return world.VersionOfSet(resources) }

// AllPorts is the set of all ports.
func AllPorts() Ports { return world.AllPorts() }

// PortsOf returns the set of some ports.
func PortsOf(numbers []uint16) Ports { return world.PortsOf(numbers) }
