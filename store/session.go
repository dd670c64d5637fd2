package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// session saves commits until the first error. It writes, and starts goroutines that
// sync and that write snapshots: no commit waits for them. One goroutine owns it.
type session struct {
	*archive
	replica  *Replica
	progress *progress
	tuning   tuning
	ctx      context.Context //nolint:containedctx // of what the session starts
	held     model.At        // the last written moment, perhaps not synced

	open    []*journal  // the journals that are not closed, the oldest first
	current *journal    // the last of open, which receives commits; nil if it was retired
	due     *time.Timer // runs when a written commit is not synced
	armed   bool        // whether due runs
	marked  time.Time   // when a time mark was written last

	parts     *sync.WaitGroup
	synced    chan syncing
	syncs     bool // a sync is in progress
	compacted chan compaction
	compacts  bool        // a compaction is in progress
	ended     *compaction // a compaction that ended while journals are being synced
	retry     time.Time
}

func newSession(ctx context.Context, d *Disk, parts *sync.WaitGroup) *session {
	return &session{
		archive: &d.archive, replica: d.replica, progress: &d.progress, tuning: d.tuning, ctx: ctx, held: d.from, marked: time.Now(), parts: parts,
		synced: make(chan syncing, 1), compacted: make(chan compaction, 1),
	}
}

// run takes batches until stop, and then the commits made before stop.
func (s *session) run(stop <-chan struct{}, batches <-chan model.Batch) error {
	s.due = time.NewTimer(s.tuning.gather)
	s.due.Stop()
	defer s.due.Stop()
	look := time.NewTicker(s.tuning.look)
	defer look.Stop()
	var end *model.At
	for end == nil || !s.has(*end) {
		var err error
		// Cases: a commit was made; written commits are due to be synced; a sync ended; no
		// commit came for a while; a snapshot beside the journal ended; Run has to end; it
		// took too long to end.
		select {
		case b := <-batches:
			err = s.take(b)
		case <-s.due.C:
			s.armed = false
			s.sync(false)
		case done := <-s.synced:
			err = s.settleSync(done)
		case <-look.C:
			err = s.look()
		case c := <-s.compacted:
			err = s.settle(c)
		case <-stop:
			now := s.replica.At()
			end, stop = &now, nil
		case <-s.ctx.Done():
			err = errNotDrained
		}
		if err != nil {
			return err
		}
		if end != nil && s.holds(*end) && s.progress.read().Saved != s.held {
			s.sync(false)
		}
	}
	if s.current == nil {
		return nil
	}
	return s.current.mark(s.mark(s.current.synced))
}

// holds reports whether everything up to a moment is written.
func (s *session) holds(at model.At) bool {
	return s.held.Epoch == at.Epoch && s.held.Revision >= at.Revision
}

// has reports whether everything up to a moment is on disk.
func (s *session) has(at model.At) bool {
	return s.holds(at) && !s.syncs && s.progress.read().Saved == s.held
}

// take writes a commit and hands it to the operating system.
func (s *session) take(b model.Batch) error {
	revision := revisionOf(b)
	if revision == 0 {
		return errReset
	}
	if err := s.openJournal(); err != nil {
		return err
	}
	s.current.commit(b, commitMark{Revision: revision, After: s.held.Revision, Changes: len(b.Events)})
	if err := s.current.flush(); err != nil {
		return err
	}
	s.current.until, s.held.Revision = revision, revision
	s.progress.wrote(s.held)
	s.arm()
	return nil
}

// arm schedules a sync of the written commits.
func (s *session) arm() {
	if !s.armed {
		s.due.Reset(s.tuning.gather)
		s.armed = true
	}
}

func (s *session) openJournal() error {
	if s.current != nil {
		return nil
	}
	number, err := s.next()
	if err != nil {
		return err
	}
	j, err := newJournal(s.archive, number, s.held.Revision)
	if err != nil {
		return err
	}
	s.current, s.open = j, append(s.open, j)
	return nil
}

// look checks the folder. Every now and then it also writes a time mark, which records
// until when the saved state was the newest.
func (s *session) look() error {
	if s.armed || time.Since(s.marked) < s.tuning.beat {
		s.sync(false)
		return nil
	}
	if err := s.openJournal(); err != nil {
		return err
	}
	s.sync(true)
	return nil
}

// sync starts to sync the written commits to disk, if there are any or anyway is set.
// Commits written meanwhile wait for the next sync.
func (s *session) sync(anyway bool) {
	if s.syncs {
		return
	}
	run := syncing{at: s.held}
	if anyway || s.progress.read().Saved != s.held || len(s.open) > 1 {
		for _, j := range s.open {
			run.journals = append(run.journals, syncingJournal{j, j.size, j != s.current})
		}
	}
	s.syncs = true
	s.parts.Go(func() {
		run.err = s.syncJournals(run.journals)
		s.synced <- run
	})
}

// settleSync records which commits a sync has put on disk.
func (s *session) settleSync(run syncing) error {
	s.syncs = false
	if run.err != nil {
		return run.err
	}
	if c := s.ended; c != nil {
		s.ended = nil
		if err := s.settle(*c); err != nil {
			return err
		}
	}
	for _, j := range run.journals {
		if !j.named {
			j.named = true
			s.journals++
		}
		if j.synced = j.size; j.retired {
			s.journalBytes += j.size
			s.open = s.open[1:]
		}
	}
	if s.held != run.at {
		s.arm()
	}
	if len(run.journals) == 0 {
		return nil
	}
	s.progress.savedUpTo(run.at, s.log, s.folder)
	if s.marked = time.Now(); s.current != nil {
		if err := s.current.mark(s.mark(s.current.synced)); err != nil {
			return err
		}
	}
	return s.maybeCompact()
}

// maybeCompact starts a new snapshot when the journals have become longer than the
// last one. Commits go to a new journal meanwhile, so none waits for it.
func (s *session) maybeCompact() error {
	bytes := s.journalBytes
	for _, j := range s.open {
		bytes += j.size
	}
	long := bytes > max(s.tuning.minJournal, s.snapBytes) || s.journals > s.tuning.maxJournals
	if !long || s.compacts || time.Now().Before(s.retry) {
		return nil
	}
	number, err := s.next()
	if err != nil {
		return err
	}
	s.current, s.compacts = nil, true
	s.arm() // so that the journal is closed
	s.parts.Go(func() { s.compacted <- compact(s.ctx, s.archive, s.replica, number) })
	return nil
}

// settle records the outcome of a new snapshot. If it failed, the journals continue.
// Journals are not removed while they are being synced.
func (s *session) settle(c compaction) error {
	if s.syncs {
		s.ended = &c
		return nil
	}
	s.compacts = false
	if c.err == nil {
		return s.superseded(c)
	}
	s.retry = time.Now().Add(s.tuning.backoff.Max)
	if errors.Is(c.err, context.Canceled) {
		return nil
	}
	s.log.Warn("no new snapshot of the last known good; the journals grow until there is room for one",
		"folder", string(s.folder), "err", c.err)
	return nil
}

// close closes the journals. Their written commits stay, because this process may be
// killed before it writes them again.
func (s *session) close() {
	for _, j := range s.open {
		_ = j.file.Close()
		if j.named {
			s.journalBytes += j.size
		} else {
			s.leave(j)
		}
	}
}
