package resource

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/convert/istio/names"
)

// qualified is the name of an object in its namespace.
type qualified struct{ namespace, name string }

// claims are the names that services have a claim to, each with its services. A
// service has two claims: to the name of the record that defines it, and to the one
// that is made of its host. A record of several hosts defines several services.
type claims map[qualified][]catalog.ServiceKey

// recordName is the name of the record that defines a service; empty if it cannot be
// that of an object, or if it looks like that of a service's further part.
func recordName(s *catalog.Service) string {
	name := s.Records[0].Record.Name
	if !names.IsObjectName(name) || name != compose.NameOf(s.Key.Host) && endsInDigest(name) {
		return ""
	}
	return name
}

// digestSize is how long the digest is with which package istio ends names.
const digestSize = 12

func endsInDigest(name string) bool {
	at := len(name) - digestSize
	if at < 1 || name[at-1] != '-' {
		return false
	}
	_, err := hex.DecodeString(name[at:])
	return err == nil
}

// claimsOf are the names that a service has a claim to.
func claimsOf(s *catalog.Service) []qualified {
	list := []qualified{{s.Key.Namespace, compose.NameOf(s.Key.Host)}}
	if name := recordName(s); name != "" && name != list[0].name {
		list = append(list, qualified{s.Key.Namespace, name})
	}
	return list
}

func (c claims) add(name qualified, key catalog.ServiceKey) {
	if at, known := slices.BinarySearchFunc(c[name], key, compareKeys); !known {
		c[name] = slices.Insert(c[name], at, key)
	}
}

func (c claims) remove(name qualified, key catalog.ServiceKey) {
	at, known := slices.BinarySearchFunc(c[name], key, compareKeys)
	if !known {
		return
	}
	if c[name] = slices.Delete(c[name], at, at+1); len(c[name]) == 0 {
		delete(c, name)
	}
}

// nameFor is the name of the first ServiceEntry of a service: that of its record if
// nobody else has a claim to it, else that made of its host.
func (c claims) nameFor(s *catalog.Service) string {
	if name := recordName(s); name != "" && len(c[qualified{s.Key.Namespace, name}]) == 1 {
		return name
	}
	name := compose.NameOf(s.Key.Host)
	for _, key := range c[qualified{s.Key.Namespace, name}] {
		if key != s.Key && compose.NameOf(key.Host) == name && compareKeys(key, s.Key) < 0 {
			sum := sha256.Sum256([]byte(s.Key.Host))
			return name + "-" + hex.EncodeToString(sum[:]) // two hosts of which one name is made
		}
	}
	return name
}
