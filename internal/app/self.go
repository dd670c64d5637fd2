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
	path := filepath.Join(c.Store.DataDir, selfFile)
	text, err := os.ReadFile(path)
	if name := strings.TrimSpace(string(text)); err == nil && model.IsPathName(name) {
		return name
	}
	name := newSelf()
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = writeWhole(path, name+"\n")
	}
	if err != nil {
		log.Warn("the name of this Isthmus is not kept, so it has another one after a restart", "name", name, "err", err)
	}
	return name
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
