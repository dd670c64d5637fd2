package store

import (
	"bufio"
	"encoding/json"
	"strconv"

	"github.com/isthmus-mesh/isthmus/model"
)

// saveFile is a file of frames being written. After its first error, which it keeps,
// no more is written.
type saveFile struct {
	path    string
	file    file
	buffer  *bufio.Writer
	frame   []byte // frame and payload are reused
	payload []byte
	size    int64
	err     error
}

func newSaveFile(path string, on files, head fileHead) (*saveFile, error) {
	f, err := on.create(path)
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

// mark writes a mark that the file has everything to be saved now. The mark is handed
// to the operating system but not synced: it survives the process, not a power
// failure.
func (s *saveFile) mark(m timeMark) error {
	s.add(frameMark, m)
	return s.flush()
}

// flush hands all buffered bytes to the operating system, where they survive the
// process.
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
func (s *saveFile) abandon(on files) {
	_ = s.file.Close()
	_ = on.remove(s.path)
}
