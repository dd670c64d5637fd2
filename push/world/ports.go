package world

import (
	"encoding/binary"
	"slices"
	"sort"
)

// Ports is a set of ports. The zero value is empty. Sets are comparable, so that views can
// contain them.
type Ports struct {
	all    bool
	listed string // two bytes for each port, in order
}

// AllPorts is the set of all ports.
func AllPorts() Ports { return Ports{all: true} }

// PortsOf returns the set of some ports.
func PortsOf(numbers []uint16) Ports {
	numbers = slices.Clone(numbers)
	slices.Sort(numbers)
	var b []byte
	for _, number := range slices.Compact(numbers) {
		b = binary.BigEndian.AppendUint16(b, number)
	}
	return Ports{listed: string(b)}
}

// Has reports whether a port is in the set.
func (p Ports) Has(number uint32) bool {
	if p.all {
		return true
	}
	at := func(i int) uint32 { return uint32(p.listed[2*i])<<8 | uint32(p.listed[2*i+1]) }
	n := len(p.listed) / 2
	i := sort.Search(n, func(i int) bool { return at(i) >= number })
	return i < n && at(i) == number
}

// All reports whether the set contains all ports.
func (p Ports) All() bool { return p.all }
