package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// DamageError reports that some of the files on disk cannot be used.
type DamageError struct {
	File   string   // the damaged file
	Cause  error    // the fault of the file
	Lost   *Lost    // the commits after the restored state; nil if no state is restored
	Moved  []string // the new names of the unused files
	Failed error    // why the files could not be renamed; nil if they were

	files []saved
}

// Lost describes the commits that were saved after the restored state.
type Lost struct {
	Revision uint64    // of the restored state
	Offset   int64     // in the file, from which on no byte is used
	Changes  int       // approximate number of lost changes
	Since    time.Time // when the restored state was the newest; zero if unknown
	Until    time.Time // when the last lost commit was saved; zero if unknown
}

func (e *DamageError) Unwrap() error { return e.Cause }

func (e *DamageError) mark() string {
	if _, ok := errors.AsType[*versionError](e.Cause); ok {
		return "newer"
	}
	return "damaged"
}

func (e *DamageError) Error() string {
	what, next := "is damaged", "keep them for a report of the cause, or delete them"
	if e.mark() == "newer" {
		what, next = "was written by a newer Isthmus", "rename them back for that one, or delete them"
	}
	text := fmt.Sprintf("%s %s: %v; ", e.File, what, e.Cause)
	if e.Lost == nil {
		text += "nothing of it is used, and serving waits for the registries"
	} else {
		text += e.Lost.String()
	}
	if len(e.Moved) > 0 {
		text += fmt.Sprintf("; what is not used is kept in %q: %s", e.Moved, next)
	}
	if e.Failed != nil {
		text += fmt.Sprintf("; not all of it could be given a name of its own, and what was not is removed once it is superseded: %v", e.Failed)
	}
	return text
}

func (l *Lost) String() string {
	text := fmt.Sprintf("what was saved before it, up to revision %d", l.Revision)
	if !l.Since.IsZero() {
		text += " of " + l.Since.UTC().Format(time.RFC3339)
	}
	text += fmt.Sprintf(", is used, and about %d changes from byte %d on are lost", l.Changes, l.Offset)
	if !l.Until.IsZero() {
		text += ", the last of " + l.Until.UTC().Format(time.RFC3339)
	}
	return text + "; every source has to be listed again"
}

// count adds up the changes that can be recognised in a part of a file.
func (l *Lost) count(rest []byte) {
	for at := bytes.IndexByte(rest, separator); at >= 0 && len(rest)-at >= headSize; at = bytes.IndexByte(rest, separator) {
		rest = rest[at:]
		kind, length, sum, ok := parseHead(rest[:headSize])
		if !ok || length > int64(len(rest)-headSize) {
			rest = rest[1:]
			continue
		}
		payload := rest[headSize : headSize+length]
		rest = rest[headSize+length:]
		var mark timeMark
		switch {
		case kind == frameUpsert || kind == frameDelete:
			l.Changes++
		case kind == frameMark && crc32.Checksum(payload, castagnoli) == sum && json.Unmarshal(payload, &mark) == nil:
			l.Until = time.UnixMilli(mark.Time)
		}
	}
}
