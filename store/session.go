package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// session saves commits until something fails. It writes, and starts parts that
// sync and that write snapshots: no commit waits for them. It belongs to one goroutine.
type session struct {
	*Disk
	ctx  context.Context //nolint:containedctx // of what the session starts
	held model.At        // what is written, though perhaps not synced

	open    []*journal  // the journals that are not closed, the oldest first
	current *journal    // the last of them, which is written to; nil if it was retired
	due     *time.Timer // running when something is written that is not synced
	armed   bool        // whether it runs
	marked  time.Time   // when the time was noted last

	parts     *sync.WaitGroup
	synced    chan syncing
	syncs     bool // one is under way
	compacted chan compaction
	compacts  bool        // one is under way
	ended     *compaction // it has ended, and journals are being synced
	retry     time.Time
}

func newSession(ctx context.Context, d *Disk, parts *sync.WaitGroup) *session {
	return &session{
		Disk: d, ctx: ctx, held: d.from, marked: time.Now(), parts: parts,
		synced: make(chan syncing, 1), compacted: make(chan compaction, 1),
	}
}

// run takes batches until stop and then those committed before it.
func (s *session) run(stop <-chan struct{}, batches <-chan model.Batch) error {
	s.due = time.NewTimer(s.tuning.gather)
	s.due.Stop()
	defer s.due.Stop()
	look := time.NewTicker(s.tuning.look)
	defer look.Stop()
	var end *model.At
	for end == nil || !s.has(*end) {
		var err error
		// Cases: something was committed; what is written is to be synced; it was;
		// nothing happens; a snapshot beside the journal ended; Run has to end; it
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
		if end != nil && s.holds(*end) && s.Saving().Saved != s.held {
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

// has reports whether it is on disk as well.
func (s *session) has(at model.At) bool {
	return s.holds(at) && !s.syncs && s.Saving().Saved == s.held
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

// arm has what is written synced, before long.
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
	j, err := s.newJournal(number, s.held.Revision)
	if err != nil {
		return err
	}
	s.current, s.open = j, append(s.open, j)
	return nil
}

// look looks at the folder, and notes the time every now and then, so that it is
// known up to when what is saved was the newest.
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

// sync starts to put on disk what is written, if anything is, or if it is to be
// done anyway. What is written meanwhile is for the next time.
func (s *session) sync(anyway bool) {
	if s.syncs {
		return
	}
	run := syncing{at: s.held}
	if anyway || s.Saving().Saved != s.held || len(s.open) > 1 {
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

// settleSync takes note of what is on disk now.
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
	s.savedUpTo(run.at)
	if s.marked = time.Now(); s.current != nil {
		if err := s.current.mark(s.mark(s.current.synced)); err != nil {
			return err
		}
	}
	return s.maybeCompact()
}

// maybeCompact starts a new snapshot when the journals have become longer than
// the last one. Commits go to a new journal meanwhile, so none waits for it.
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
	s.parts.Go(func() { s.compacted <- s.compact(s.ctx, number) })
	return nil
}

// settle takes note of how a new snapshot ended. If it failed, the journals go
// on. Journals are not removed while they are being synced.
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

// close closes the journals. What was handed to the operating system stays, for
// this process may be killed before it is handed over again.
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
