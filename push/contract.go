package push

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// The contract between producers and the engine: see package world.
type (
	World        = world.World
	View         = world.View
	Subject      = world.Subject
	Referrer     = world.Referrer
	Incremental  = world.Incremental
	Unrepeatable = world.Unrepeatable
	Encoded      = world.Encoded
	Fragments    = world.Fragments
	Resource     = world.Resource
	Version      = world.Version
	Update       = world.Update
	Changed      = world.Changed
)

// The table of a producer's types.
type (
	Type         = world.Type
	Row          = world.Row
	TypeSpec     = world.TypeSpec
	NameDebounce = world.NameDebounce
	Debounce     = world.Debounce
	Absence      = world.Absence
	Mode         = world.Mode
)

// A client, as far as its views depend on it.
type (
	Client = world.Client
	Proxy  = world.Proxy
	Bind   = world.Bind
	Ports  = world.Ports
)

// Panic describes the panics of one place.
type Panic = world.Panic

// The messages between a subscriber and its stream: see package session.
type (
	Request    = session.Request
	Answer     = session.Answer
	AnswerKind = session.AnswerKind
	Wildcard   = session.Wildcard
	Response   = session.Response
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

// The status of a subscriber's types and resources.
type (
	TypeStatus     = session.TypeStatus
	ResourceStatus = session.ResourceStatus
	State          = session.Phase
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
