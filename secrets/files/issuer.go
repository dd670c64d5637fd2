package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/secrets"
)

const (
	interval = time.Second            // between two looks at the files
	quiet    = 200 * time.Millisecond // between two looks at files in change
	// share bounds the part of the time that looks take: a tenth.
	share = 10
	// mostFolders bounds the folders that are read.
	mostFolders = 10_000
	// window is for how long a leaf is kept without clients.
	window = time.Hour
)

// Issuer has the certificates of a folder.
type Issuer struct {
	reader
	now atomic.Pointer[state]
}

// reader is the state of [Issuer.Run], which no other goroutine uses.
type reader struct {
	dir, domain string
	log         *slog.Logger
	places      map[placeKey]*place
	shelf       *shelf
	next        time.Duration // the wait for the next look
}

type placeKey struct {
	dir   string
	names layout
}

// state is a decision of the reader. It is never changed.
type state struct {
	leaves   map[string]*pair // by identity
	bundle   *secrets.Bundle
	problems []identity.Problem // by reason
	changed  chan struct{}      // closed when other leaves or authorities follow
}

var _ secrets.Issuer = (*Issuer)(nil)

// Open reads a folder of certificates of a trust domain. It fails if the folder is unreadable.
// Unusable pairs are problems of their identities alone.
func Open(dir, trustDomain string, log *slog.Logger) (*Issuer, error) {
	i := &Issuer{reader: reader{
		dir: dir, domain: trustDomain, log: log, places: map[placeKey]*place{}, shelf: newShelf(), next: interval,
	}}
	i.now.Store(&state{bundle: &secrets.Bundle{}, changed: make(chan struct{})})
	if all, err := i.folders(); len(all) == 0 {
		return nil, err
	}
	i.look(true, time.Now())
	log.Info("certificates come from files", "dir", dir, "identities", len(i.now.Load().leaves))
	return i, nil
}

// Check returns the problems of the pairs in a folder, for the field dir. An unreadable folder has
// none.
func Check(dir, trustDomain string) error {
	i, err := Open(dir, trustDomain, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil //nolint:nilerr // the configuration reports it
	}
	var errs []error
	for _, problem := range i.Problems() {
		errs = append(errs, fmt.Errorf("dir: %s", problem.Reason))
	}
	return errors.Join(errs...)
}

// Secrets returns the paths of the keys that may be in a folder.
func Secrets(dir string) (paths []string) {
	folders, _ := (&reader{dir: dir}).folders()
	for _, folder := range folders {
		for _, names := range layouts() {
			paths = append(paths, filepath.Join(folder, names[keyFile]))
		}
	}
	return paths
}

// Run follows the files until ctx ends.
func (i *Issuer) Run(ctx context.Context) error {
	for wait.Sleep(ctx, i.next) {
		i.look(false, time.Now())
	}
	return nil
}

// Issue implements [secrets.Issuer]. It makes nothing: the certificate is that of the files.
func (i *Issuer) Issue(identity string, now time.Time) (*secrets.Leaf, error) {
	p := i.now.Load().leaves[identity]
	if p == nil {
		return nil, fmt.Errorf("no folder in %s has a usable certificate of it; have one written there", i.dir)
	}
	leaf := p.leaf
	leaf.Window.Until = now.Add(window)
	return &leaf, nil
}

// Current implements [secrets.Issuer]. A leaf stays until another one of its identity follows.
func (i *Issuer) Current(leaf *secrets.Leaf) bool {
	p := i.now.Load().leaves[leaf.Identity]
	return p == nil || p.leaf.Generation == leaf.Generation
}

// Bundle implements [secrets.Issuer]. It is empty until there is a pair.
func (i *Issuer) Bundle() *secrets.Bundle { return i.now.Load().bundle }

// Changed implements [secrets.Issuer].
func (i *Issuer) Changed() <-chan struct{} { return i.now.Load().changed }

// Problems returns the lasting failures. Reasons name the file and the next step.
func (i *Issuer) Problems() []identity.Problem {
	return i.now.Load().problems
}

// look looks at all files once and publishes the decision.
func (i *Issuer) look(atOnce bool, now time.Time) {
	soon, err := i.read(atOnce, now)
	var pairs []*pair
	var problems []string
	if err != nil {
		problems = append(problems, err.Error())
	}
	for key, p := range i.places {
		if !p.read.there && (p.pair == nil || p.pair.expired(now)) {
			delete(i.places, key)
			continue
		}
		if p.pair != nil {
			pairs = append(pairs, p.pair)
		}
		if p.err != nil {
			problems = append(problems, p.problem())
		}
	}
	problems = append(problems, i.shelf.arrange(pairs, now)...)
	slices.Sort(problems)
	i.publish(problems, now)
	if i.next = max(interval, share*time.Since(now)); soon {
		i.next = quiet
	}
}

// problem returns why the files are not in use, and the pair in use instead.
func (p *place) problem() string {
	if p.pair == nil {
		return p.err.Error()
	}
	return fmt.Sprintf("%v; the certificate before, of %s, stays in use until then", p.err, p.pair.leaf.Identity)
}

// read looks at all places. If the folder is unreadable, nothing changes.
func (r *reader) read(atOnce bool, now time.Time) (soon bool, err error) {
	folders, err := r.folders()
	for _, dir := range folders {
		for _, names := range layouts() {
			key := placeKey{dir, names}
			if r.places[key] == nil && stampOf(dir, names).there {
				r.places[key] = &place{dir: dir, names: names, read: stamp{there: true}}
			}
		}
	}
	if len(folders) == 0 {
		return false, err
	}
	for _, p := range r.places {
		if p.look(r.domain, atOnce, now) {
			soon = true
		}
	}
	return soon, err
}

// folders returns the folder and the folders in it. Hidden ones are older states and links of
// mounted volumes.
func (r *reader) folders() (list []string, err error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; create the folder, or make it readable", r.dir, cause(err))
	}
	list = append(list, r.dir)
	for _, one := range entries {
		path := filepath.Join(r.dir, one.Name())
		if strings.HasPrefix(one.Name(), ".") || !isFolder(path, one) {
			continue
		}
		if list = append(list, path); len(list) > mostFolders {
			return list, fmt.Errorf("%s has more than %d folders, and those after %s are not read; remove some", r.dir, mostFolders, path)
		}
	}
	return list, nil
}

// isFolder follows links.
func isFolder(path string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.IsDir()
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// publish makes the content of the shelf known, and logs new problems and certificates.
func (i *Issuer) publish(problems []string, now time.Time) {
	before := i.now.Load()
	next := &state{leaves: before.leaves, bundle: before.bundle, changed: before.changed}
	if !maps.Equal(before.leaves, i.shelf.served) {
		next.leaves, next.changed = maps.Clone(i.shelf.served), make(chan struct{})
		i.logRenewed(before.leaves, next.leaves)
	}
	if text := encode(i.shelf.authorities()); !bytes.Equal(text, before.bundle.Authorities) {
		next.bundle, next.changed = &secrets.Bundle{Authorities: text}, make(chan struct{})
	}
	for _, reason := range problems {
		at := slices.IndexFunc(before.problems, func(p identity.Problem) bool { return p.Reason == reason })
		if at >= 0 {
			next.problems = append(next.problems, before.problems[at])
			continue
		}
		next.problems = append(next.problems, identity.Problem{
			About: "certificates in files", Reason: reason, Since: now, Next: "correct it as the reason says; files are read anew by themselves",
		})
		i.log.Error("certificates in files have a problem", "problem", reason)
	}
	i.now.Store(next)
	if next.changed != before.changed {
		close(before.changed)
	}
}

// logRenewed logs the certificates that follow others.
func (i *Issuer) logRenewed(before, now map[string]*pair) {
	for id, p := range now {
		if old := before[id]; old != nil && old.leaf.Generation != p.leaf.Generation {
			i.log.Info("a certificate was replaced", "identity", id, "file", p.path, "notAfter", p.leaf.NotAfter)
		}
	}
}
