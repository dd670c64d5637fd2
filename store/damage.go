package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"time"
)

// DamageError says that some of what is on disk cannot be used.
type DamageError struct {
	File   string   // in which it shows
	Cause  error    // what is wrong with it
	Lost   *Lost    // what came after the state that is used; nil if none is
	Moved  []string // what the files that are not used are called
	Failed error    // why they could not be given these names; nil if they were

	files []saved
}

// Lost is what was saved after the state that is used.
type Lost struct {
	Revision uint64    // of the state that is used
	Offset   int64     // in the file from which on nothing is used
	Changes  int       // about how many there were
	Since    time.Time // when the state that is used was the newest; zero if unknown
	Until    time.Time // when the last of what is lost was saved; zero if unknown
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

// lost takes note of a journal that could not be read, and of those after it,
// which go on from what it held. before is damage of a snapshot; it may be nil.
func (d *Disk) lost(l *loading, files []saved, cause error, before *DamageError) *DamageError {
	damage := before
	if damage == nil {
		damage = &DamageError{File: d.folder.path(files[0].name()), Cause: cause}
	}
	damage.Lost = &Lost{Revision: l.revision, Offset: l.whole, Since: l.saved}
	for i, f := range files {
		if f.prefix != journalPrefix {
			continue
		}
		from := int64(0)
		if i == 0 {
			from = l.whole
		}
		damage.files = append(damage.files, f)
		if content, err := os.ReadFile(d.folder.path(f.name())); err == nil {
			damage.Lost.count(content[min(from, int64(len(content))):])
		}
	}
	return damage
}

// count adds up what can be recognised in a part of a file.
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
