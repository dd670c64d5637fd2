package store

import (
	"context"
	"os"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// snapshotFile is a snapshot being written. It has its name only when it is
// whole and on disk.
type snapshotFile struct {
	*saveFile
	folder folder
	name   string
	count  int
}

func (d *Disk) newSnapshotFile(number int) (*snapshotFile, error) {
	name := saved{snapshotPrefix, number}.name()
	f, err := newSaveFile(d.folder.path(name+temporary), d.tuning.create, fileHead{Content: "snapshot"})
	if err != nil {
		return nil, err
	}
	return &snapshotFile{saveFile: f, folder: d.folder, name: name}, nil
}

// take writes the next batch of a snapshot. After the last one, the file has
// its name, and the moment it is of is returned.
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
	s.add(frameMark, timeMark{Time: time.Now().UnixMilli()})
	if err := s.sync(); err != nil {
		return err
	}
	if err := s.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(s.path, s.folder.path(s.name)); err != nil {
		return err
	}
	return s.folder.sync()
}

// compaction is a snapshot that was written beside the journal.
type compaction struct {
	number int
	size   int64
	err    error
}

// compact writes a snapshot of the store as it is now.
func (d *Disk) compact(ctx context.Context, number int) compaction {
	s, err := d.newSnapshotFile(number)
	if err != nil {
		return compaction{number, 0, err}
	}
	for b, failed := range d.replica.Watch(ctx, model.Filter{}) {
		ended := false
		if err = failed; err == nil {
			_, ended, err = s.take(b)
		}
		if ended || err != nil {
			break
		}
	}
	if err != nil {
		s.abandon()
	}
	return compaction{number, s.size, err}
}
