package authority

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/bounded"
	"github.com/isthmus-mesh/isthmus/internal/lockfile"
	"github.com/isthmus-mesh/isthmus/internal/secretfile"
)

// The files of the folder. The root certificate is written last, so that a folder without
// it has no authority yet.
const (
	RootFile     = "root.pem"      // one certificate, or two during a rotation; the first one signs
	RootKeyFile  = "root-key.pem"  // their keys, in any order; it may be elsewhere
	IssuerFile   = "issuer.pem"    // [issuing]
	CrossFile    = "cross.pem"     // the signing root's key, signed by the root before it
	RotationFile = "rotation.json" // [rotationRecord]
	TokenKeyFile = "token-key.pem"
	TokensFile   = "tokens.json"
	lockFile     = "lock"
)

// The modes of files: private ones are for their owner alone.
const (
	private = 0o600
	public  = 0o644
)

// folder is the path of the files.
type folder string

func (d folder) path(name string) string { return filepath.Join(string(d), name) }

// lockLimit is how long a command waits for another command on the same folder.
const lockLimit = 30 * time.Second

func (d folder) lock() (*os.File, error) {
	f, err := lockfile.Await(d.path(lockFile), lockLimit)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be locked, and nothing was changed: %w", d, plainCause(err))
	}
	return f, nil
}

// make makes the folder, and checks that it has no files of others.
func (d folder) make() error {
	if err := os.Mkdir(string(d), 0o700); err == nil {
		return folder(d.path("..")).sync()
	} else if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the folder %s cannot be created: %w; create the folder above it, or name another", d, plainCause(err))
	}
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return fmt.Errorf("%s cannot be read as a folder: %w; name another", d, plainCause(err))
	}
	own := append(files(), lockFile)
	for _, entry := range entries {
		name := entry.Name()
		unfinished := strings.TrimSuffix(strings.TrimPrefix(name, "."), ".new") // by an interrupted command
		if !slices.Contains(own, name) && !slices.Contains(own, unfinished) && name != "lost+found" {
			return fmt.Errorf("%s has other files, such as %q: give the authority a folder of its own", d, name)
		}
	}
	return nil
}

// files returns the names of the files in a folder, beside the lock.
func files() []string {
	return []string{RootFile, RootKeyFile, IssuerFile, CrossFile, RotationFile, TokenKeyFile, identity.TokenKeysFile, TokensFile, identity.RevokedFile}
}

// keeps reports whether a file of an unfinished authority is there. It is an error if another
// user can have put it there.
func (d folder) keeps(name string) (bool, error) {
	if !d.has(name) {
		return false, nil
	}
	if reason := secretfile.Replaceable(d.path(name)); reason != "" {
		return false, fmt.Errorf("another user can have put %s there, and it is not taken; remove the files of the unfinished authority, and repeat the command after this is corrected: %s", d.path(name), reason)
	}
	return true, nil
}

func (d folder) has(name string) bool {
	_, err := os.Lstat(d.path(name))
	return err == nil
}

// replace writes a file: readers see either the old content or the new one, also after a
// loss of power. The caller has the lock of the folder.
func (d folder) replace(name string, mode fs.FileMode, text []byte) error {
	next := d.path("." + name + ".new")
	_ = os.Remove(next) // an interrupted command may have left it
	err := writeNew(next, mode, text)
	if err == nil {
		err = os.Rename(next, d.path(name))
	}
	if err != nil {
		_ = os.Remove(next)
		return fmt.Errorf("%s cannot be written, and is unchanged: %w; make room and check the rights of the folder, then repeat the command", d.path(name), plainCause(err))
	}
	if err := d.sync(); err != nil {
		return fmt.Errorf("%s is written, but may be lost if the machine fails now: %w; check the disk, then repeat the command", d.path(name), plainCause(err))
	}
	return nil
}

// writeNew writes a file that does not exist, and syncs its content to disk.
func writeNew(path string, mode fs.FileMode, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode) //nolint:gosec // the operator names the folder
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// sync puts the names of the folder's files on disk.
func (d folder) sync() error {
	if runtime.GOOS == "windows" {
		return nil // Windows cannot sync a folder
	}
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// read reads a file that every complete authority has.
func (d folder) read(name string) ([]byte, error) {
	text, err := bounded.File(d.path(name))
	switch {
	case err == nil:
		return text, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s cannot be read: %w; run the command as the owner of the folder", d.path(name), plainCause(err))
	case d.lacksRoot() != nil:
		return nil, d.lacksRoot()
	case d.has(RootFile):
		return nil, fmt.Errorf("%s is missing: restore it from your backup", d.path(name))
	case d.has(RootKeyFile) || d.has(TokenKeyFile):
		return nil, fmt.Errorf("the authority in %s is unfinished: finish it with 'isthmus ca init --dir %[1]s --trust-domain DOMAIN'", d)
	default:
		return nil, fmt.Errorf("%s has no authority: name its folder, or create one with 'isthmus ca init --dir %[1]s --trust-domain DOMAIN'", d)
	}
}

// lacksRoot returns an error if the root is missing although the authority was finished: the key of the
// root, which is written first, was moved away.
func (d folder) lacksRoot() error {
	if d.has(RootFile) || d.has(RootKeyFile) || !d.has(IssuerFile) {
		return nil
	}
	return fmt.Errorf("%s is missing: restore it from your backup, or from a machine that trusts it", d.path(RootFile))
}

// plainCause returns the cause of a file's error, without the path.
func plainCause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err
	}
	return err
}
