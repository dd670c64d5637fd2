package store

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// decodeAtOnce is the number of frames that are decoded together, on all processors.
// Only their content is kept in memory while a file is read.
const decodeAtOnce = 4096

// revisions states which revisions the records of a commit may have.
type revisions bool

const (
	anyRevision revisions = false // up to the commit's
	theCommits  revisions = true
)

// take takes the next frame of a file.
func (l *loading) take(f frame, which revisions) error {
	switch f.kind {
	case frameUpsert, frameDelete:
		l.raw = append(l.raw, f)
		if len(l.raw) == decodeAtOnce {
			return l.stage()
		}
		return nil
	case frameCommit:
		var c commitMark
		if err := json.Unmarshal(f.payload, &c); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		if err := l.stage(); err != nil {
			return err
		}
		err := l.commit(c, which)
		l.staged = l.staged[:0]
		return err
	case frameMark:
		var m timeMark
		if err := json.Unmarshal(f.payload, &m); err != nil {
			return fmt.Errorf("mark: %w", err)
		}
		l.saved, l.listed = time.UnixMilli(m.Time), m.listed()
		return nil
	default:
		return fmt.Errorf("a frame of the unknown type %q", f.kind)
	}
}

// stage decodes the frames that wait to be decoded.
func (l *loading) stage() error {
	changes, errs := make([]change, len(l.raw)), make([]error, len(l.raw))
	workers := min(runtime.GOMAXPROCS(0), len(l.raw)/64+1)
	var decoding sync.WaitGroup
	for w := range workers {
		if w == len(l.decoders) {
			l.decoders = append(l.decoders, model.NewDecoder())
		}
		decoder := l.decoders[w]
		decoding.Go(func() {
			for i := w; i < len(l.raw); i += workers {
				changes[i], errs[i] = decode(decoder, l.raw[i])
			}
		})
	}
	decoding.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	clear(l.raw)
	l.staged, l.raw = append(l.staged, changes...), l.raw[:0]
	return nil
}

func decode(decoder *model.Decoder, f frame) (change, error) {
	if f.kind == frameUpsert {
		r, err := decoder.Decode(f.payload)
		return change{after: &r}, err
	}
	var gone model.Record
	if err := json.Unmarshal(f.payload, &gone.Ref); err != nil {
		return change{}, fmt.Errorf("delete: %w", err)
	}
	return change{before: &gone}, nil
}

// commit makes the staged changes, all of them or none. A commit that an earlier file
// contains is skipped.
func (l *loading) commit(c commitMark, which revisions) error {
	switch {
	case len(l.staged) != c.Changes:
		return fmt.Errorf("a commit of %d changes has %d", c.Changes, len(l.staged))
	case which == theCommits && c.Revision <= l.revision:
		return nil
	case c.After != l.revision:
		return fmt.Errorf("revision %d changes %d, and what comes before it ends at %d", c.Revision, c.After, l.revision)
	case c.Revision < l.revision:
		return fmt.Errorf("revision %d comes after %d", c.Revision, l.revision)
	}
	// All changes are checked before the first is made: the commits before an invalid
	// commit are used without a part of it.
	for _, change := range l.staged {
		if err := l.check(change, c.Revision, which); err != nil {
			return err
		}
	}
	for _, change := range l.staged {
		if change.after == nil {
			l.records.Delete(change.before.Ref)
		} else {
			l.records.Set(change.after.Ref, change.after)
		}
	}
	l.revision = c.Revision
	return nil
}

func (l *loading) check(c change, revision uint64, which revisions) error {
	if c.after == nil {
		if _, stored := l.records.View().Get(c.before.Ref); !stored {
			return fmt.Errorf("revision %d deletes %s, which is not stored", revision, c.before.Ref)
		}
		return nil
	}
	if problem := problemOfSaved(c.after, revision); problem != "" {
		return fmt.Errorf("%s: %s", c.after.Ref, problem)
	}
	if which == theCommits && c.after.Revision != revision {
		return fmt.Errorf("%s: revision %d in a commit of %d", c.after.Ref, c.after.Revision, revision)
	}
	return nil
}
