package xdsclient

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
)

// Ledger compares the versions that all clients of it are given: one version
// stands for one content, for every client and over every stream. The
// zero value is ready to use.
type Ledger struct {
	mu       sync.Mutex
	contents map[string][sha256.Size]byte // by what a version is said of
	versions map[contentKey]string
}

type contentKey struct {
	of     string
	digest [sha256.Size]byte
}

// note takes in a version of something and returns what is wrong with it.
func (l *Ledger) note(of, version string, digest [sha256.Size]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.contents == nil {
		l.contents, l.versions = map[string][sha256.Size]byte{}, map[contentKey]string{}
	}
	said, key := of+"@"+version, contentKey{of, digest}
	if before, ok := l.contents[said]; ok && before != digest {
		return fmt.Errorf("version %s of %s stands for two contents", version, of)
	}
	if before, ok := l.versions[key]; ok && before != version {
		return fmt.Errorf("one content of %s has the versions %s and %s", of, before, version)
	}
	l.contents[said], l.versions[key] = digest, version
	return nil
}

// noteResource takes in the version of a single resource.
func (l *Ledger) noteResource(r Resource) error {
	return l.note(short(r.Type)+" "+r.Name, r.Version, r.digest)
}

// noteState takes in the version of a full set.
func (l *Ledger) noteState(typeURL, version string, resources []Resource) error {
	resources = slices.SortedFunc(slices.Values(resources), byName)
	h := sha256.New()
	for _, r := range resources {
		h.Write([]byte(r.Name))
		h.Write(r.digest[:])
	}
	return l.note("the state of "+short(typeURL), version, [sha256.Size]byte(h.Sum(nil)))
}
