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
	synced int64  // up to where it is on disk
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

// syncing is one time that journals are synced, with all that was written to
// them by then.
type syncing struct {
	journals []syncingJournal // none if the folder is only looked at
	at       model.At         // that they lead up to
	err      error
}

type syncingJournal struct {
	*journal
	size    int64
	retired bool // nothing will be written to it any more
}

// syncJournals puts journals on disk, each before those that go on from it, and
// their names. It makes sure that they are in the folder of that name.
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

// leftover is a journal that could not be synced. It has commits that this process
// will hand over again.
type leftover struct {
	path  string
	until uint64
}

// leave leaves a journal that was never on disk where it is, if nothing has more
// of its commits, and removes the one before it.
func (d *Disk) leave(j *journal) {
	if d.locked() != nil {
		return // what is there may be another's
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
