package world

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"math/bits"
)

// Version is a hash of content: equal on every replica and after every restart.
type Version [16]byte

// VersionOf hashes content given in parts. The boundaries between the parts matter.
func VersionOf(parts ...[]byte) Version {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	return Version(h.Sum(nil)[:16])
}

func (v Version) String() string { return hex.EncodeToString(v[:]) }

// ParseVersion parses the form of [Version.String]; ok is false for any other text.
func ParseVersion(s string) (v Version, ok bool) {
	if len(s) != hex.EncodedLen(len(v)) { // a longer text would be written past the end
		return Version{}, false
	}
	if _, err := hex.Decode(v[:], []byte(s)); err != nil {
		return Version{}, false
	}
	return v, true
}

// Member is the part of a set's version that a resource adds: a hash of its name and
// version. The engine compares members wherever it would compare versions: members of one
// name are equal exactly if its versions are.
type Member Version

// MemberOf returns the member of a resource. It hashes in a buffer on the stack, because a
// client that resumes needs one hash for each of its names.
func MemberOf(name string, v Version) Member {
	var buffer [256]byte
	b := append(binary.LittleEndian.AppendUint64(buffer[:0], uint64(len(name))), name...)
	b = append(binary.LittleEndian.AppendUint64(b, uint64(len(v))), v[:]...)
	sum := sha256.Sum256(b)
	return Member(sum[:len(v)])
}

// With and Without make the version of a set: the sum of its members modulo 2¹²⁸, in any
// order.
func (v Version) With(m Member) Version {
	vl, vh := v.words()
	ml, mh := Version(m).words()
	low, carry := bits.Add64(vl, ml, 0)
	high, _ := bits.Add64(vh, mh, carry)
	return fromWords(low, high)
}

// Without is the opposite of With.
func (v Version) Without(m Member) Version {
	vl, vh := v.words()
	ml, mh := Version(m).words()
	low, borrow := bits.Sub64(vl, ml, 0)
	high, _ := bits.Sub64(vh, mh, borrow)
	return fromWords(low, high)
}

// Plus returns the version of the union of two disjoint sets, given the version of each.
func (v Version) Plus(o Version) Version { return v.With(Member(o)) }

// Minus is the opposite of Plus.
func (v Version) Minus(o Version) Version { return v.Without(Member(o)) }

// VersionOfSet returns the version of a set of resources, in any order.
func VersionOfSet(resources iter.Seq2[string, Version]) (sum Version) {
	for name, v := range resources {
		sum = sum.With(MemberOf(name, v))
	}
	return sum
}

func (v Version) words() (low, high uint64) {
	return binary.LittleEndian.Uint64(v[:8]), binary.LittleEndian.Uint64(v[8:])
}

func fromWords(low, high uint64) (v Version) {
	binary.LittleEndian.PutUint64(v[:8], low)
	binary.LittleEndian.PutUint64(v[8:], high)
	return v
}
