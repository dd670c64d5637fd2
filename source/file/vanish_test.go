package file_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/file"
)

// first is a sink that wants one listing.
type first struct {
	sink
	objects int
}

var errEnough = errors.New("one listing is enough")

func (f *first) Replace(_ context.Context, l model.Listing) error {
	f.objects = len(l.Objects)
	return errEnough
}

// A folder that is taken away while it is read for the first time has been read whole,
// or not at all.
func TestFolderVanishesWhileItIsFirstRead(t *testing.T) {
	t.Parallel()
	const files, rounds = 150, 30
	outside := t.TempDir()
	root, aside := filepath.Join(outside, "registry"), filepath.Join(outside, "aside")
	for i := range files {
		name := fmt.Sprintf("s%03d", i)
		write(t, root, fmt.Sprintf("%d/%s.yaml", i%5, name), entry(name, name+".example"))
	}
	read := func() (int, error) {
		all := &first{}
		err := file.New(file.Config{Path: root}.Unwatched(), slog.New(slog.DiscardHandler)).Run(t.Context(), all)
		return all.objects, err
	}
	began := time.Now()
	if n, err := read(); n != files || !errors.Is(err, errEnough) {
		t.Fatalf("%d of %d files are listed: %v", n, files, err)
	}
	takes := time.Since(began)
	for round := range rounds {
		moved := make(chan error)
		move := time.AfterFunc(takes*time.Duration(round)/rounds, func() { moved <- os.Rename(root, aside) })
		n, err := read()
		if errors.Is(err, errEnough) && n != files {
			t.Errorf("the first listing has %d of %d files", n, files)
		}
		if !move.Stop() {
			if err := <-moved; err != nil {
				t.Fatal(err)
			}
			rename(t, "", aside, root)
		}
	}
}
