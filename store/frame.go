package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// A saved file is a line of text with the version of its format, followed by frames.
//
// A frame is a head of 16 bytes and a payload of JSON. The head starts with a
// separator that no JSON contains, the type and two zero bytes. Then follow the
// payload's length, its CRC-32C, and the CRC-32C of the head so far. A length is used
// only if this checksum confirms it. Numbers are little-endian.
const (
	formatName    = "isthmus store "
	formatVersion = 1

	separator = 0x1e
	headSize  = 16
)

// frameType is the type of a frame's content.
type frameType byte

const (
	frameHead   frameType = 'h' // of the file: [fileHead]
	frameUpsert frameType = 'u' // a record as of the commit that follows
	frameDelete frameType = 'd' // the reference of a record that the commit deletes
	frameCommit frameType = 'c' // [commitMark]: commits the frames since the last one
	frameMark   frameType = 'm' // [timeMark]
)

type frame struct {
	kind    frameType
	payload []byte
}

// fileHead is the first frame of a file.
type fileHead struct {
	Content string `json:"content"` // snapshot or journal
	// Base is the revision that a journal continues from. Its snapshot may be of a later
	// revision; it then contains the first commits of the journal.
	Base uint64 `json:"base,omitempty"`
}

// commitMark ends a commit. A snapshot is one commit, to an empty store.
type commitMark struct {
	Revision uint64 `json:"revision"`
	After    uint64 `json:"after"`   // the revision before it
	Changes  int    `json:"changes"` // number of its frames
}

// timeMark states that the file had everything to be saved at a time (Unix, in
// milliseconds). Everything before its offset was on disk by then.
type timeMark struct {
	Time   int64 `json:"time"`
	Synced int64 `json:"synced"`
	// Listed is when the sources with older records were listed last by then.
	Listed map[string]int64 `json:"listed,omitempty"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends a frame to b.
func appendFrame(b []byte, kind frameType, payload []byte) []byte {
	start := len(b)
	b = append(b, separator, byte(kind), 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	return append(b, payload...)
}

// parseHead reads the head of a frame.
func parseHead(head []byte) (kind frameType, length int64, sum uint32, ok bool) {
	u32 := binary.LittleEndian.Uint32
	ok = head[0] == separator && head[2] == 0 && head[3] == 0 && u32(head[12:]) == crc32.Checksum(head[:12], castagnoli)
	return frameType(head[1]), int64(u32(head[4:])), u32(head[8:]), ok
}

// brokenError is the offset from which on a file cannot be read, and why.
type brokenError struct {
	offset int64
	reason string
}

func (e *brokenError) Error() string { return fmt.Sprintf("at byte %d: %s", e.offset, e.reason) }

// frameReader reads the frames of a file of known size.
type frameReader struct {
	r            io.Reader
	offset, size int64
}

// next returns the next frame, io.EOF at the very end, or a [*brokenError]. It
// never allocates more than the file has left, however broken that is.
func (f *frameReader) next() (frame, error) {
	left := f.size - f.offset
	if left == 0 {
		return frame{}, io.EOF
	}
	var head [headSize]byte
	if left < headSize {
		return frame{}, &brokenError{f.offset, "ends within a frame"}
	}
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return frame{}, err
	}
	kind, length, sum, ok := parseHead(head[:])
	if !ok {
		return frame{}, &brokenError{f.offset, "is no frame"}
	}
	if length > left-headSize {
		return frame{}, &brokenError{f.offset, "ends within a frame"}
	}
	payload := make([]byte, length)
	if _, err := io.ReadFull(f.r, payload); err != nil {
		return frame{}, err
	}
	if crc32.Checksum(payload, castagnoli) != sum {
		return frame{}, &brokenError{f.offset, "checksum differs"}
	}
	f.offset += headSize + length
	return frame{kind, payload}, nil
}

func newTimeMark(now time.Time, synced int64, listed map[string]time.Time) timeMark {
	m := timeMark{Time: now.UnixMilli(), Synced: synced}
	for source, at := range listed {
		if m.Listed == nil {
			m.Listed = make(map[string]int64, len(listed))
		}
		m.Listed[source] = at.UnixMilli()
	}
	return m
}

func (m timeMark) listed() map[string]time.Time {
	out := make(map[string]time.Time, len(m.Listed))
	for source, at := range m.Listed {
		out[source] = time.UnixMilli(at)
	}
	return out
}
