package store

import (
	"context"
	"os"

	"github.com/isthmus-mesh/isthmus/model"
)

// snapshotFile is a snapshot being written. It gets its name when it is whole and on
// disk.
type snapshotFile struct {
	*saveFile
	disk  *Disk
	name  string
	count int
}

func (d *Disk) newSnapshotFile(number int) (*snapshotFile, error) {
	if err := d.locked(); err != nil {
		return nil, err
	}
	name := saved{snapshotPrefix, number}.name()
	f, err := newSaveFile(d.folder.path(name+temporary), d.files, fileHead{Content: "snapshot"})
	if err != nil {
		return nil, err
	}
	return &snapshotFile{saveFile: f, disk: d, name: name}, nil
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
	s.add(frameMark, s.disk.mark(0))
	if err := s.sync(); err != nil {
		return err
	}
	if err := s.file.Close(); err != nil {
		return err
	}
	if err := s.disk.locked(); err != nil {
		return err
	}
	if err := s.disk.files.rename(s.path, s.disk.folder.path(s.name)); err != nil {
		return err
	}
	return s.disk.folder.sync(s.disk.files)
}

// compaction is a snapshot that was written beside the journal.
type compaction struct {
	at   model.At // of the snapshot
	size int64
	info os.FileInfo
	err  error
}

// compact writes a snapshot of the store as it is now.
func (d *Disk) compact(ctx context.Context, number int) (c compaction) {
	s, err := d.newSnapshotFile(number)
	if err != nil {
		return compaction{err: err}
	}
	for b, failed := range d.replica.Watch(ctx, model.Filter{}) {
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
		c.info, err = os.Lstat(d.folder.path(s.name))
	}
	if c.err = err; err != nil {
		s.abandon(d.files)
	}
	return c
}
