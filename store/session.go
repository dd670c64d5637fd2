package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

var errNotDrained = errors.New("the disk was too slow: the last commits were not saved before the process had to stop; " +
	"the next start reads them from the registries again")

// session saves until something fails. It belongs to one goroutine.
type session struct {
	*Disk
	ctx  context.Context //nolint:containedctx // of what the session starts
	held model.At        // what is written, though perhaps not synced; zero before the first snapshot

	snapshot *snapshotFile // being written; nil when following
	journal  *saveFile     // nil when nothing was committed since the last one was closed
	synced   bool          // the journal has been synced
	flush    *time.Timer   // running when something is written that is not synced
	waiting  bool          // whether it runs

	parts     *sync.WaitGroup
	compacted chan compaction
	compacts  bool // one is under way
	retry     time.Time
}

// run takes batches until stop and then those committed before it.
func (s *session) run(stop <-chan struct{}, batches <-chan model.Batch) error {
	s.flush = time.NewTimer(s.tuning.gather)
	s.flush.Stop()
	defer s.flush.Stop()
	beat := time.NewTicker(s.tuning.beat)
	defer beat.Stop()
	var limit <-chan time.Time
	var end *model.At
	for end == nil || !s.has(*end) {
		var err error
		// Cases: something was committed; it has been gathered long enough;
		// nothing happens; a snapshot beside the journal ended; Run has to
		// end; it takes too long to end.
		select {
		case b := <-batches:
			err = s.take(b)
		case <-s.flush.C:
			s.waiting = false
			err = s.sync()
		case <-beat.C:
			err = s.beat()
		case c := <-s.compacted:
			s.settle(c)
		case <-stop:
			now := s.replica.At()
			end, stop = &now, nil
			timer := time.NewTimer(s.tuning.drain)
			defer timer.Stop() //nolint:gocritic // it comes here once
			limit = timer.C
		case <-limit:
			err = errNotDrained
		}
		if err != nil {
			return err
		}
	}
	return s.sync()
}

// has reports whether everything up to a moment is written.
func (s *session) has(at model.At) bool {
	return s.snapshot == nil && s.held.Epoch == at.Epoch && s.held.Revision >= at.Revision
}

// take writes a batch. Without a snapshot on disk, and after a reset, a new
// one comes first.
func (s *session) take(b model.Batch) error {
	if _, ok := b.Events[0].(model.Reset); ok {
		s.held = model.At{}
		return s.closeJournal()
	}
	s.pending(b.Committed)
	if s.held == (model.At{}) {
		return s.takeSnapshot(b)
	}
	return s.takeCommit(b)
}

func (s *session) pending(since time.Time) {
	if since.IsZero() {
		since = time.Now()
	}
	s.report(func(p *Saving) {
		if p.Pending.IsZero() {
			p.Pending = since
		}
	})
}

func (s *session) takeSnapshot(b model.Batch) (err error) {
	if s.snapshot == nil {
		if s.snapshot, err = s.newSnapshotFile(s.next()); err != nil {
			return err
		}
	}
	at, ended, err := s.snapshot.take(b)
	if err != nil || !ended {
		return err
	}
	s.superseded(s.snapshot.size)
	s.snapshot, s.held = nil, at
	s.savedUpTo(at)
	return nil
}

// superseded notes a new snapshot and removes what came before it.
func (s *session) superseded(size int64) {
	s.snapBytes, s.journals, s.journalBytes = size, 0, 0
	s.folder.tidy()
}

func (s *session) takeCommit(b model.Batch) error {
	if err := s.openJournal(); err != nil {
		return err
	}
	mark := commitMark{After: s.held.Revision, Changes: len(b.Events)}
	switch e := b.Events[0].(type) {
	case model.Upsert:
		mark.Revision = e.Record.Revision
	case model.Delete:
		mark.Revision = e.Revision
	}
	s.journal.commit(b, mark)
	s.held.Revision = mark.Revision
	if !s.waiting {
		s.flush.Reset(s.tuning.gather)
		s.waiting = true
	}
	return s.journal.err
}

func (s *session) next() int {
	s.number++
	return s.number
}

func (s *session) openJournal() (err error) {
	if s.journal != nil {
		return nil
	}
	path := s.folder.path(saved{journalPrefix, s.next()}.name())
	s.journal, err = newSaveFile(path, s.tuning.create, fileHead{Content: "journal", Base: s.held.Revision})
	s.synced = false
	return err
}

// sync puts what is written on disk, and with the first of it the file's name.
func (s *session) sync() error {
	if s.journal == nil {
		return nil
	}
	if err := s.journal.sync(); err != nil {
		return err
	}
	if !s.synced {
		if err := s.folder.sync(); err != nil {
			return err
		}
		s.synced = true
		s.journals++
	}
	s.savedUpTo(s.held)
	if err := s.journal.mark(time.Now(), s.journal.size); err != nil {
		return err
	}
	return s.maybeCompact()
}

// beat notes the time when nothing else does, so that it is known up to when
// what is saved was the newest.
func (s *session) beat() error {
	if s.held == (model.At{}) || s.waiting {
		return nil
	}
	if err := s.openJournal(); err != nil {
		return err
	}
	return s.sync()
}

// maybeCompact starts a new snapshot when the journals have become longer than
// the last one. Commits go to a new journal meanwhile, so none waits for it.
func (s *session) maybeCompact() error {
	long := s.journalBytes+s.journal.size > max(s.tuning.minJournal, s.snapBytes) || s.journals > s.tuning.maxJournals
	if !long || s.compacts || time.Now().Before(s.retry) {
		return nil
	}
	if err := s.closeJournal(); err != nil {
		return err
	}
	number := s.next()
	s.compacts = true
	s.parts.Go(func() { s.compacted <- s.compact(s.ctx, number) })
	return nil
}

// settle takes note of how a new snapshot ended. If it failed, the journals go on.
func (s *session) settle(c compaction) {
	s.compacts = false
	if c.err == nil {
		s.superseded(c.size)
		return
	}
	s.retry = time.Now().Add(s.tuning.backoff.Max)
	s.log.Warn("no new snapshot of the last known good; the journals grow until there is room for one",
		"folder", string(s.folder), "err", c.err)
}

func (s *session) closeJournal() error {
	j := s.journal
	if j == nil {
		return nil
	}
	s.journal = nil
	s.journalBytes += j.size
	return errors.Join(j.sync(), j.file.Close())
}

// close leaves behind nothing that was never on disk.
func (s *session) close() {
	if s.snapshot != nil {
		s.snapshot.abandon()
	}
	if s.journal == nil {
		return
	}
	if s.synced {
		s.journalBytes += s.journal.size
		_ = s.journal.file.Close()
	} else {
		s.journal.abandon()
	}
}
