package store

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// file is what is written to: an [os.File], or a disk that fails in a test.
type file interface {
	io.Writer
	Sync() error
	Close() error
}

func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// saveFile is a file that frames are written to. Its first error stays: what
// comes after is not written.
type saveFile struct {
	path    string
	file    file
	buffer  *bufio.Writer
	frame   []byte // reused, as is payload
	payload []byte
	size    int64
	err     error
}

func newSaveFile(path string, create func(string) (file, error), head fileHead) (*saveFile, error) {
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	s := &saveFile{path: path, file: f, buffer: bufio.NewWriterSize(f, 256<<10)}
	s.write([]byte(formatName + strconv.Itoa(formatVersion) + "\n"))
	s.add(frameHead, head)
	return s, nil
}

func (s *saveFile) write(b []byte) {
	if s.err == nil {
		_, s.err = s.buffer.Write(b)
		s.size += int64(len(b))
	}
}

func (s *saveFile) add(kind frameType, what any) {
	payload, err := json.Marshal(what)
	s.addEncoded(kind, payload, err)
}

func (s *saveFile) addEncoded(kind frameType, payload []byte, err error) {
	if s.err == nil {
		s.err = err
	}
	s.frame = appendFrame(s.frame[:0], kind, payload)
	s.write(s.frame)
}

func (s *saveFile) upsert(r model.Record) {
	payload, err := model.AppendEncoded(s.payload[:0], r)
	s.addEncoded(frameUpsert, payload, err)
	s.payload = payload
}

// commit writes the events of one commit.
func (s *saveFile) commit(b model.Batch, mark commitMark) {
	for _, event := range b.Events {
		switch e := event.(type) {
		case model.Upsert:
			s.upsert(e.Record)
		case model.Delete:
			s.add(frameDelete, e.Record.Ref)
		}
	}
	s.add(frameCommit, mark)
}

// mark writes that the file is all there is to save now. It is handed to the
// operating system, so it survives the process, but not put on disk.
func (s *saveFile) mark(now time.Time, synced int64) error {
	s.add(frameMark, timeMark{now.UnixMilli(), synced})
	return s.flush()
}

func (s *saveFile) flush() error {
	if s.err == nil {
		s.err = s.buffer.Flush()
	}
	return s.err
}

// sync puts everything written on disk.
func (s *saveFile) sync() error {
	if s.flush() == nil {
		s.err = s.file.Sync()
	}
	return s.err
}

// abandon closes and removes the file.
func (s *saveFile) abandon() {
	_ = s.file.Close()
	_ = os.Remove(s.path)
}
