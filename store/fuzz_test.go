package store

import (
	"bytes"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
)

// memoryFile is a file that is nowhere.
type memoryFile struct{ bytes.Buffer }

func (*memoryFile) Sync() error  { return nil }
func (*memoryFile) Close() error { return nil }

// oneFile is files that are all the same one.
type oneFile struct {
	diskFiles
	file file
}

func (o oneFile) create(string) (file, error) { return o.file, nil }

// framed makes a file of lines, each the type of a frame and its payload, so
// that what is inside gets past the checksums.
func framed(head, lines string) []byte {
	b := appendFrame([]byte("isthmus store 1\n"), frameHead, []byte(head))
	for line := range strings.Lines(lines) {
		b = appendFrame(b, frameType(line[0]), []byte(line[1:]))
	}
	return b
}

// FuzzSnapshot reads anything as a snapshot. Whatever the bytes, reading ends;
// what is taken is whole, and what is saved of it is read as the same.
func FuzzSnapshot(f *testing.F) {
	const head = `{"content":"snapshot"}`
	for _, lines := range []string{
		"u" + noteJSON + "\n" + `c{"revision":7,"after":0,"changes":1}`,
		`c{"revision":0,"after":0,"changes":0}` + "\n" + `m{"time":1,"synced":0}`,
		"u" + noteJSON,
		`d{"kind":"Note","key":{"name":"x"}}` + "\n" + `c{"revision":7,"after":0,"changes":1}`,
	} {
		f.Add(framed(head, lines), lines)
	}
	f.Add([]byte("isthmus store 2\n"), "x")
	f.Fuzz(func(t *testing.T, raw []byte, lines string) {
		for _, content := range [][]byte{raw, framed(head, lines)} {
			l := newLoading()
			if l.snapshot(bytes.NewReader(content), int64(len(content))) == nil {
				savedAgain(t, l)
			}
		}
	})
}

func savedAgain(t *testing.T, l *loading) {
	t.Helper()
	all, saved := l.records.Map(), &memoryFile{}
	s, err := newSaveFile("", oneFile{file: saved}, fileHead{Content: "snapshot"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all.All() {
		s.upsert(*r)
	}
	s.add(frameCommit, commitMark{Revision: l.revision, Changes: all.Len()})
	if err := s.sync(); err != nil {
		t.Fatal(err)
	}
	again := newLoading()
	if err := again.snapshot(bytes.NewReader(saved.Bytes()), s.size); err != nil {
		t.Fatalf("what was taken cannot be saved and read: %v", err)
	}
	for ref, r := range again.records.Map().All() {
		if was, ok := all.Get(ref); !ok || !sameState(*r, *was) {
			t.Errorf("%+v became %+v", was, r)
		}
	}
	if again.revision != l.revision || again.records.Map().Len() != all.Len() {
		t.Errorf("revision %d with %d records became %d with %d", l.revision, all.Len(), again.revision, again.records.Map().Len())
	}
}

// FuzzJournal reads anything after a good snapshot. Every record is then of a
// whole commit: one the journal ends, or the snapshot.
func FuzzJournal(f *testing.F) {
	const head = `{"content":"journal","base":6}`
	for _, lines := range []string{
		"u" + noteJSON + "\n" + `c{"revision":7,"after":6,"changes":1}`,
		"u" + noteJSON + "\n" + `c{"revision":7,"after":6,"changes":1}` + "\n" + `d{"kind":"Note","key":{"source":"files","name":"z"}}` + "\n" + `c{"revision":8,"after":7,"changes":1}`,
		"u" + noteJSON,
		"",
	} {
		f.Add(framed(head, lines), lines)
	}
	f.Fuzz(func(t *testing.T, raw []byte, lines string) {
		for _, content := range [][]byte{raw, framed(head, lines)} {
			l := newLoading()
			l.revision = 6
			l.records.Set(noteOf("old", "").Ref, &model.Record{Ref: noteOf("old", "").Ref, Revision: 6})
			if l.journal(bytes.NewReader(content), int64(len(content))) != nil {
				continue
			}
			for ref, r := range l.records.Map().All() {
				if r.Revision < 6 || r.Revision > l.revision || r.Ref != ref {
					t.Errorf("revision %d has %s of %d", l.revision, ref, r.Revision)
				}
			}
		}
	})
}
