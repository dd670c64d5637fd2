package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// loading is the content of the files read so far: whole commits, in their order, up
// to the first commit that cannot be read.
type loading struct {
	whole    int64 // offset of the last whole commit in the journal being read
	revision uint64
	records  *immutable.Editor[model.Ref, *model.Record]
	saved    time.Time            // of the last mark
	listed   map[string]time.Time // of the last mark: the sources that were older

	raw      []frame          // of the commit being read, not decoded yet
	staged   []change         // of the commit being read; before has but a reference
	decoders []*model.Decoder // one for each goroutine that decodes
}

func newLoading() *loading { return &loading{records: noRecords().Edit()} }

// snapshot reads a snapshot file: one commit, whole, and nothing after it.
func (l *loading) snapshot(r io.ReaderAt, size int64) error {
	frames, err := l.begin(r, size, "snapshot")
	if err != nil {
		return err
	}
	ended := false
	for {
		f, err := frames.next()
		switch {
		case errors.Is(err, io.EOF) && ended:
			return nil
		case errors.Is(err, io.EOF):
			return &brokenError{size, "the end is missing"}
		case err != nil:
			return err
		}
		if ended && f.kind != frameMark {
			return &brokenError{frames.offset, "goes on after its end"}
		}
		if err := l.take(f, anyRevision); err != nil {
			return fmt.Errorf("before byte %d: %w", frames.offset, err)
		}
		ended = ended || f.kind == frameCommit
	}
}

// journal reads a journal file up to its last whole commit. The frames being written
// when the process was killed or the power failed are cut off. Such frames have no
// time mark after them that states that they were on disk. Anything else that cannot
// be read is damage.
func (l *loading) journal(r io.ReaderAt, size int64) error {
	defer func() { l.raw, l.staged = nil, nil }()
	l.whole = 0
	frames, err := l.begin(r, size, "journal")
	for err == nil {
		var f frame
		if f, err = frames.next(); err == nil {
			if err := l.take(f, theCommits); err != nil {
				return fmt.Errorf("before byte %d: %w", frames.offset, err)
			}
			if f.kind == frameCommit || f.kind == frameMark && len(l.raw)+len(l.staged) == 0 {
				l.whole = frames.offset
			}
		}
	}
	if broken, ok := errors.AsType[*brokenError](err); ok {
		return wasOnDisk(r, size, broken)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// wasOnDisk returns the breakage if a time mark after it states that the place had
// been on disk. It returns nil if the place was still being written.
func wasOnDisk(r io.ReaderAt, size int64, broken *brokenError) error {
	tail := make([]byte, size-broken.offset)
	if _, err := r.ReadAt(tail, broken.offset); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	start := []byte{separator, byte(frameMark), 0, 0}
	for at := bytes.Index(tail, start); at >= 0; {
		frames := frameReader{r: bytes.NewReader(tail[at:]), size: int64(len(tail) - at)}
		var mark timeMark
		if f, err := frames.next(); err == nil && json.Unmarshal(f.payload, &mark) == nil && mark.Synced > broken.offset {
			return broken
		}
		next := bytes.Index(tail[at+1:], start)
		if next < 0 {
			return nil
		}
		at += 1 + next
	}
	return nil
}

// begin reads the line and the frame that identify a file's format and content.
func (l *loading) begin(r io.ReaderAt, size int64, content string) (*frameReader, error) {
	line := formatName + strconv.Itoa(formatVersion) + "\n"
	buffered := bufio.NewReaderSize(io.NewSectionReader(r, 0, size), int(min(max(size, 64), 1<<20)))
	if err := readVersion(buffered, line); err != nil {
		return nil, err
	}
	frames := &frameReader{r: buffered, offset: int64(len(line)), size: size}
	f, err := frames.next()
	if errors.Is(err, io.EOF) {
		return nil, &brokenError{size, "ends before it begins"}
	}
	if err != nil {
		return nil, err
	}
	var head fileHead
	if err := json.Unmarshal(f.payload, &head); err != nil || f.kind != frameHead || head.Content != content {
		return nil, fmt.Errorf("is no %s", content)
	}
	if head.Base > l.revision {
		return nil, fmt.Errorf("goes on from revision %d, and what comes before it ends at %d", head.Base, l.revision)
	}
	return frames, nil
}

// versionError is a file that another version of Isthmus wrote.
type versionError struct{ version int }

func (e *versionError) Error() string {
	return fmt.Sprintf("is of format %d, and this Isthmus reads %d", e.version, formatVersion)
}

func readVersion(r *bufio.Reader, line string) error {
	got, err := r.Peek(len(line))
	if string(got) == line {
		_, err = r.Discard(len(line))
		return err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	got, _ = r.Peek(len(formatName) + 8)
	text, _, _ := strings.Cut(string(got), "\n")
	if version, ok := strings.CutPrefix(text, formatName); ok {
		if n, err := strconv.Atoi(version); err == nil && n > formatVersion {
			return &versionError{n}
		}
	}
	return &brokenError{0, "does not begin as a saved store does"}
}
