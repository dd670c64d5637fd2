package store

import (
	"os"

	"github.com/isthmus-mesh/isthmus/model"
)

// journal is a journal that is open.
type journal struct {
	*saveFile
	info   os.FileInfo
	until  uint64 // the newest revision that was handed to the operating system; zero if there is none
	synced int64  // the offset up to which the journal is on disk
	named  bool   // its name is on disk
}

func (d *Disk) newJournal(number int, base uint64) (*journal, error) {
	if err := d.locked(); err != nil {
		return nil, err
	}
	path := d.folder.path(saved{journalPrefix, number}.name())
	f, err := newSaveFile(path, d.files, fileHead{Content: "journal", Base: base})
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		f.abandon(d.files)
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
func (d *Disk) syncJournals(journals []syncingJournal) error {
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
		if err := d.folder.sync(d.files); err != nil {
			return err
		}
	}
	return d.intact(journals)
}

// leftover is a journal that could not be synced. This process will write its commits
// again.
type leftover struct {
	path  string
	until uint64
}

// leave keeps the file of a journal that was never synced, unless another leftover has
// as many of its commits. It removes the previous leftover.
func (d *Disk) leave(j *journal) {
	if d.locked() != nil {
		return // the files there may be another process's
	}
	if j.until <= d.left.until {
		_ = d.files.remove(j.path)
		return
	}
	if d.left.path != "" {
		_ = d.files.remove(d.left.path)
	} else {
		d.journals++
	}
	d.left = leftover{j.path, j.until}
}
