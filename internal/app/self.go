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

// selfFile is where an Isthmus without a name of its own keeps one, in the folder of its store.
const selfFile = "name"

// selfOf is the name that the paths of records have of this Isthmus: that of its instance, if
// the configuration gives one. Else it is one that no other has, which outlives a restart in the
// folder of the store. The folder has to be this process's own by then. A name that cannot
// be kept does for this process: another one later costs no more than an exchange of all paths.
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

// keepSelf puts the name into a folder of the store that was made again, unless it is there.
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
	_, _ = rand.Read(b[:]) // it never fails
	return config.DefaultInstance + "-" + hex.EncodeToString(b[:])
}

// writeWhole has a file be there with all of its text, or not at all.
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
