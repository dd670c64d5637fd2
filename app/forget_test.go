package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// A start forgets the sources that are not configured. Damage to the disk takes the
// marks of all others, and leaves their records.
func TestAStartForgetsSourcesThatAreNotConfigured(t *testing.T) {
	t.Parallel()
	for what, damaged := range map[string]bool{"whole": false, "damaged": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c, problems := config.Parse([]byte("sources: [{name: files, file: {path: "+filepath.Join(dir, "files")+"}}]\n"+
				"outputs: {xds: {listen: \"127.0.0.1:0\"}}\nadmin: {listen: \"127.0.0.1:0\"}\nstore: {dataDir: "+filepath.Join(dir, "data")+"}\n"), os.LookupEnv)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			saveSources(t, c.Store.DataDir, "files", "gone", "older")
			if damaged {
				damageLast(t, c.Store.DataDir)
			}
			a, err := New(t.Context(), c, "test", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = a.listeners[0].Close(); _ = a.adminListener.Close(); a.abandon() }()
			want := []string{"Note files:a", "Source files:files"}
			if damaged {
				want = want[:1]
			}
			var got []string
			for r := range a.store.List(model.Filter{}) {
				got = append(got, r.String())
			}
			if !slices.Equal(got, want) {
				t.Errorf("stored are %q, want %q", got, want)
			}
		})
	}
}

// saveSources leaves a record and the mark of each source on disk, and after
// them some commits in a journal.
func saveSources(t *testing.T, dir string, names ...string) {
	t.Helper()
	d, err := store.OpenDisk(store.DiskConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	for i, name := range names {
		var c model.Commit
		for _, r := range []model.Record{
			{Ref: model.Ref{Kind: model.KindSource, Key: model.Key{Source: name, Name: name}}, Spec: model.SourceMark{}},
			{Ref: model.Ref{Kind: "Note", Key: model.Key{Source: name, Name: "a"}}, Spec: model.Opaque{Content: "1"}},
		} {
			c.Writes = append(c.Writes, model.Write{Record: r})
		}
		if _, err := d.Store().Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
		onDisk(t, d, uint64(i+1))
	}
	for i := range 2 {
		ref := model.Ref{Kind: "Note", Key: model.Key{Source: names[0], Name: "b"}}
		stored, ok := d.Store().Get(ref)
		w := model.Write{Record: model.Record{Ref: ref, Revision: stored.Revision, Spec: model.Opaque{Content: "1"}}, Delete: ok}
		if _, err := d.Store().Commit(ctx, model.Commit{Writes: []model.Write{w}}); err != nil {
			t.Fatal(err)
		}
		onDisk(t, d, uint64(len(names)+i+1))
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func onDisk(t *testing.T, d *store.Disk, revision uint64) {
	t.Helper()
	until.NoError(t, time.Millisecond, "saving", func() error {
		if saved := d.Saving().Saved.Revision; saved < revision {
			return fmt.Errorf("revision %d of %d is on disk", saved, revision)
		}
		return nil
	})
}

// damageLast changes a byte of the last commit but one.
func damageLast(t *testing.T, dir string) {
	t.Helper()
	journals, err := filepath.Glob(filepath.Join(dir, "journal-*"))
	if err != nil || len(journals) == 0 {
		t.Fatalf("no journal in %s: %v", dir, err)
	}
	last := journals[len(journals)-1]
	text, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2+len(text)/4] ^= 1
	if err := os.WriteFile(last, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
