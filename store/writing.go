package store

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strconv"

	"github.com/isthmus-mesh/isthmus/model"
)

// saveFile is a file of frames being written. After its first error, which it keeps,
// no more is written.
type saveFile struct {
	path    string
	file    file
	buffer  *bufio.Writer
	frame   []byte // frame and payload are reused
	payload []byte
	size    int64
	err     error
}

func newSaveFile(path string, on files, head fileHead) (*saveFile, error) {
	f, err := on.create(path)
	if err != nil {
		return nil, err
	}
	s := &saveFile{path: path, file: f, buffer: bufio.NewWriterSize(f, 256<<10)}
	s.write([]byte(formatName + strconv.Itoa(formatVersion) + "\n"))
	s.add(frameHead, head)
	return s, nil
}

func (s *saveFile) write(b []byte) {
	if s.err == nil {
		_, s.err = s.buffer.Write(b)
		s.size += int64(len(b))
	}
}

func (s *saveFile) add(kind frameType, what any) {
	payload, err := json.Marshal(what)
	s.addEncoded(kind, payload, err)
}

func (s *saveFile) addEncoded(kind frameType, payload []byte, err error) {
	if s.err == nil {
		s.err = err
	}
	s.frame = appendFrame(s.frame[:0], kind, payload)
	s.write(s.frame)
}

func (s *saveFile) upsert(r model.Record) {
	payload, err := model.AppendEncoded(s.payload[:0], r)
	s.addEncoded(frameUpsert, payload, err)
	s.payload = payload
}

// commit writes the events of one commit.
func (s *saveFile) commit(b model.Batch, mark commitMark) {
	for _, event := range b.Events {
		switch e := event.(type) {
		case model.Upsert:
			s.upsert(e.Record)
		case model.Delete:
			s.add(frameDelete, e.Record.Ref)
		}
	}
	s.add(frameCommit, mark)
}

// mark writes a mark that the file has everything to be saved now. The mark is handed
// to the operating system but not synced: it survives the process, not a power
// failure.
func (s *saveFile) mark(m timeMark) error {
	s.add(frameMark, m)
	return s.flush()
}

// flush hands all buffered bytes to the operating system, where they survive the
// process.
func (s *saveFile) flush() error {
	if s.err == nil {
		s.err = s.buffer.Flush()
	}
	return s.err
}

// sync puts everything written on disk.
func (s *saveFile) sync() error {
	if s.flush() == nil {
		s.err = s.file.Sync()
	}
	return s.err
}

// abandon closes and removes the file.
func (s *saveFile) abandon(on files) {
	_ = s.file.Close()
	_ = on.remove(s.path)
}

// journal is a journal that is open.
type journal struct {
	*saveFile
	info   os.FileInfo
	until  uint64 // the newest revision that was handed to the operating system; zero if there is none
	synced int64  // the offset up to which the journal is on disk
	named  bool   // its name is on disk
}

func newJournal(in *archive, number int, base uint64) (*journal, error) {
	if err := in.locked(); err != nil {
		return nil, err
	}
	path := in.folder.path(saved{journalPrefix, number}.name())
	f, err := newSaveFile(path, in.files, fileHead{Content: "journal", Base: base})
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		f.abandon(in.files)
		return nil, err
	}
	return &journal{saveFile: f, info: info}, nil
}

// syncing is one sync of the journals, of all commits written to them by then.
type syncing struct {
	journals []syncingJournal // empty if only the folder is checked
	at       model.At         // the moment of their last commit
	err      error
}

type syncingJournal struct {
	*journal
	size    int64
	retired bool // no further commits will be written to it
}

// syncJournals syncs journals to disk, each before the journals that continue from it,
// and their names. It checks that they are in the folder of that name.
func (a *archive) syncJournals(journals []syncingJournal) error {
	named := true
	for _, j := range journals {
		if err := j.file.Sync(); err != nil {
			return err
		}
		if j.retired {
			if err := j.file.Close(); err != nil {
				return err
			}
		}
		named = named && j.named
	}
	if !named {
		if err := a.folder.sync(a.files); err != nil {
			return err
		}
	}
	return a.intact(journals)
}

// leftover is a journal that could not be synced. This process will write its commits
// again.
type leftover struct {
	path  string
	until uint64
}

// leave keeps the file of a journal that was never synced, unless another leftover has
// as many of its commits. It removes the previous leftover.
func (a *archive) leave(j *journal) {
	if a.locked() != nil {
		return // the files there may be another process's
	}
	if j.until <= a.left.until {
		_ = a.files.remove(j.path)
		return
	}
	if a.left.path != "" {
		_ = a.files.remove(a.left.path)
	} else {
		a.journals++
	}
	a.left = leftover{j.path, j.until}
}

// snapshotFile is a snapshot being written. It gets its name when it is whole and on
// disk.
type snapshotFile struct {
	*saveFile
	in    *archive
	name  string
	count int
}

func newSnapshotFile(in *archive, number int) (*snapshotFile, error) {
	if err := in.locked(); err != nil {
		return nil, err
	}
	name := saved{snapshotPrefix, number}.name()
	f, err := newSaveFile(in.folder.path(name+temporary), in.files, fileHead{Content: "snapshot"})
	if err != nil {
		return nil, err
	}
	return &snapshotFile{saveFile: f, in: in, name: name}, nil
}

// take writes the next batch of a snapshot. After the last batch, take gives the file
// its name and returns the moment of the snapshot.
func (s *snapshotFile) take(b model.Batch) (at model.At, ended bool, err error) {
	for _, event := range b.Events {
		switch e := event.(type) {
		case model.Upsert:
			s.upsert(e.Record)
			s.count++
		case model.EndOfSnapshot:
			return model.At{Epoch: e.Epoch, Revision: e.Revision}, true, s.finish(e.Revision)
		}
	}
	return model.At{}, false, s.err
}

func (s *snapshotFile) finish(revision uint64) error {
	s.add(frameCommit, commitMark{Revision: revision, Changes: s.count})
	s.add(frameMark, s.in.mark(0))
	if err := s.sync(); err != nil {
		return err
	}
	if err := s.file.Close(); err != nil {
		return err
	}
	if err := s.in.locked(); err != nil {
		return err
	}
	if err := s.in.files.rename(s.path, s.in.folder.path(s.name)); err != nil {
		return err
	}
	return s.in.folder.sync(s.in.files)
}

// compaction is a snapshot that was written beside the journal.
type compaction struct {
	at   model.At // of the snapshot
	size int64
	info os.FileInfo
	err  error
}

// compact writes a snapshot of a replica as it is now.
func compact(ctx context.Context, in *archive, replica *Replica, number int) (c compaction) {
	s, err := newSnapshotFile(in, number)
	if err != nil {
		return compaction{err: err}
	}
	for b, failed := range replica.Watch(ctx, model.Filter{}) {
		ended := false
		if err = failed; err == nil {
			c.at, ended, err = s.take(b)
		}
		if ended || err != nil {
			break
		}
	}
	if err == nil {
		c.size = s.size
		c.info, err = os.Lstat(in.folder.path(s.name))
	}
	if c.err = err; err != nil {
		s.abandon(in.files)
	}
	return c
}
