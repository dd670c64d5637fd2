package app

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
)

// selfFile is the file with the name of an unnamed Isthmus, in the folder of its store.
const selfFile = "name"

// selfOf returns the name of this Isthmus in the paths of records. It is the instance's
// name, if configured, otherwise a unique name. The folder of the store keeps it across
// restarts; the folder has to be locked by this process by then. A name that cannot be kept
// is valid for this process: another name later only costs an exchange of all paths.
func selfOf(c *config.Config, log *slog.Logger) string {
	if c.Instance != config.DefaultInstance {
		return c.Instance
	}
	if c.Store.DataDir == "" {
		return newSelf()
	}
	name, err := savedSelf(c)
	if err == nil && model.IsPathName(name) {
		return name
	}
	if name = newSelf(); err == nil || errors.Is(err, fs.ErrNotExist) {
		err = saveSelf(c, name)
	}
	notKept(log, name, err)
	return name
}

// savedSelf reads the name from the folder of the store.
func savedSelf(c *config.Config) (string, error) {
	text, err := os.ReadFile(filepath.Join(c.Store.DataDir, selfFile))
	return strings.TrimSpace(string(text)), err
}

func saveSelf(c *config.Config, name string) error {
	return writeWhole(filepath.Join(c.Store.DataDir, selfFile), name+"\n")
}

func notKept(log *slog.Logger, name string, err error) {
	if err != nil {
		log.Warn("the name of this Isthmus is not kept, so it has another one after a restart", "name", name, "err", err)
	}
}

// keepSelf writes the name into a recreated folder of the store, unless it is there.
func (a *App) keepSelf(c *config.Config) {
	if c.Instance != config.DefaultInstance {
		return
	}
	if there, err := savedSelf(c); err != nil || there != a.self {
		notKept(a.log, a.self, saveSelf(c, a.self))
	}
}

func newSelf() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return config.DefaultInstance + "-" + hex.EncodeToString(b[:])
}

// writeWhole writes a file whole or not at all.
func writeWhole(path, text string) error {
	const mode = 0o600
	next := path + ".tmp"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, wrote := f.WriteString(text)
	if err := errors.Join(wrote, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(next, path)
}
