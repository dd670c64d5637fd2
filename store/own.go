package store

import (
	"errors"
	"fmt"
	"os"

	"github.com/isthmus-mesh/isthmus/model"
)

var errNotOurs = errors.New("the folder was removed or replaced while this process ran")

// intact checks that the folder is still the opened one and contains the saved files.
func (d *Disk) intact(journals []syncingJournal) error {
	if err := d.locked(); err != nil {
		return err
	}
	if d.snapshot != nil {
		if err := isStill(d.snapshot, d.folder.path(d.snapshot.Name())); err != nil {
			return err
		}
	}
	for _, j := range journals {
		if j.retired {
			continue // a new snapshot may have superseded the journal by now
		}
		if err := isStill(j.info, j.path); err != nil {
			return err
		}
	}
	return nil
}

// locked checks that the folder has the lock of this process.
func (d *Disk) locked() error {
	ours, err := d.lock.Stat()
	if err != nil {
		return err
	}
	return isStill(ours, d.folder.path(lockName))
}

// isStill checks that a path still leads to a file.
func isStill(file os.FileInfo, path string) error {
	now, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotOurs, err)
	}
	if !os.SameFile(file, now) {
		return fmt.Errorf("%w: %s is another file", errNotOurs, path)
	}
	return nil
}

// own makes sure that the folder belongs to this process. A removed or replaced folder
// is created again, unless another process has locked it. Files that another process
// left there are kept under other names.
func (d *Disk) own() error {
	lost := d.intact(nil)
	if !errors.Is(lost, errNotOurs) {
		return lost
	}
	d.from = model.At{}
	d.progress.lost()
	if err := d.relock(); err != nil {
		return err
	}
	if d.remade != nil {
		d.remade()
	}
	list, _, err := d.folder.read()
	if err != nil {
		return err
	}
	if len(list) > 0 {
		d.number = max(d.number, list[len(list)-1].number)
	}
	var kept []string
	if d.snapshot == nil || isStill(d.snapshot, d.folder.path(d.snapshot.Name())) != nil {
		kept, err = d.folder.keep(d.files, list, "replaced")
	}
	d.snapshot, d.snapBytes, d.journals, d.journalBytes, d.left = nil, 0, 0, 0, leftover{}
	d.log.Warn("the folder of the last known good was removed or replaced: it is made again, and everything is saved anew. Find out who removed it",
		"folder", string(d.folder), "reason", lost, "kept", kept, "err", err)
	return nil
}

func (d *Disk) relock() error {
	if err := d.locked(); !errors.Is(err, errNotOurs) {
		return err
	}
	if err := d.folder.make(d.files); err != nil {
		return err
	}
	lock, err := d.folder.lock(0, nil)
	if err != nil {
		return err
	}
	releaseLock(d.lock)
	d.lock = lock
	return nil
}
