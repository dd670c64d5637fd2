package secretfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes a secret to a file for its owner alone, whole or not at all. It follows no
// link of another user, and replaces nothing but files.
func Write(path string, text []byte) error {
	dir, name := filepath.Split(filepath.Clean(path))
	folder, err := openFolder(filepath.Clean(dir))
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	defer folder.Close()
	if info, err := folder.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file, and stays: name another", path)
	}
	next := "." + name + "." + rand.Text()
	f, err := folder.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Sync(), f.Close())
		if err == nil {
			err = folder.Rename(next, name)
		}
		if err != nil {
			_ = folder.Remove(next)
		}
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w; make room and check the rights of the folder, or name another file", path, cause(err))
	}
	return nil
}

// openFolder opens a folder to which no link of another user leads.
func openFolder(dir string) (*os.Root, error) {
	var judged fs.FileInfo
	for at, info := range parts(dir) {
		if uid, _, known := owner(info); known && isLink(info) && !trusted(uid) {
			return nil, fmt.Errorf("the link %s belongs to another user (uid %d); name the folder itself", at, uid)
		}
		judged = info
	}
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%w; create the folder, or name another", cause(err))
	}
	if opened, err := folder.Stat("."); err != nil || !os.SameFile(opened, judged) {
		_ = folder.Close()
		return nil, errors.New("the folder was replaced meanwhile; name another")
	}
	return folder, nil
}

// cause returns an error of the file system without its path, which the text already has.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err
	}
	return err
}
