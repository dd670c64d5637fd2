package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// longestChange bounds the wait until files stay unchanged.
	longestChange = 5 * time.Second
	// settled is the age from which on the times of a file tell its changes apart: file systems
	// have coarse clocks.
	settled = 2 * time.Second
	// retry is the wait before unusable files are read again although they did not change: a
	// certificate may be valid later.
	retry = 10 * time.Second
	// largest is far above the size of any valid file.
	largest = 1 << 20
)

// place is where a pair may be: a folder and a layout.
type place struct {
	dir   string
	names layout

	pair *pair // the last usable one
	err  error // why the files are not in use

	seen     stamp     // of the last look
	changing time.Time // since when each look has found another stamp; zero if none
	read     stamp     // of the last reading
	at       time.Time // of the last reading; zero if there was none
}

// stamp tells contents of files apart without reading them.
type stamp struct {
	files [fileCount]fs.FileInfo
	there bool // there may be a file
}

func stampOf(dir string, names layout) (s stamp) {
	for i, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil {
			s.files[i] = info
		}
		s.there = s.there || !errors.Is(err, fs.ErrNotExist)
	}
	return s
}

func (s stamp) equal(o stamp) bool {
	for i, a := range s.files {
		b := o.files[i]
		if (a == nil) != (b == nil) {
			return false
		}
		if a != nil && (!os.SameFile(a, b) || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime())) {
			return false
		}
	}
	return s.there == o.there
}

// newest returns the time of the last change.
func (s stamp) newest() (at time.Time) {
	for _, one := range s.files {
		if one != nil && one.ModTime().After(at) {
			at = one.ModTime()
		}
	}
	return at
}

// look reads the files if they changed and are complete, and reports whether to look again
// soon. At once takes files that may still be in change.
func (p *place) look(domain string, atOnce bool, now time.Time) (soon bool) {
	s := stampOf(p.dir, p.names)
	if p.unchanged(s, now) {
		p.changing = time.Time{}
		return false
	}
	if !atOnce && !s.equal(p.seen) {
		if p.changing.IsZero() {
			p.changing = now
		}
		if p.seen = s; now.Sub(p.changing) < longestChange {
			return true
		}
	}
	p.seen = s
	r, err := p.readFiles()
	if !stampOf(p.dir, p.names).equal(s) { // a part may be older than another one
		return true
	}
	p.read, p.at, p.changing = s, now, time.Time{}
	p.take(r, err, domain, now)
	return false
}

// unchanged reports whether the last reading is surely that of the files, and worth no other.
func (p *place) unchanged(s stamp, now time.Time) bool {
	if p.at.IsZero() || !s.equal(p.read) {
		return false
	}
	if p.err != nil {
		return now.Sub(p.at) < retry
	}
	return s.newest().Before(p.at.Add(-settled))
}

// take uses a reading if it is a usable pair.
func (p *place) take(r reading, err error, domain string, now time.Time) {
	if err == nil {
		var next *pair
		if next, err = r.pair(domain, p.pair, now); err == nil && !next.equal(p.pair) {
			p.pair = next
		}
	}
	p.err = err
}

func (p *place) readFiles() (r reading, err error) {
	if !p.seen.there {
		return r, fmt.Errorf("%s: %s, %s and %s are gone; write them again", p.dir, p.names[certFile], p.names[keyFile], p.names[authoritiesFile])
	}
	r = reading{dir: p.dir, names: p.names}
	for i, name := range p.names {
		if r.text[i], err = readFile(filepath.Join(p.dir, name)); err != nil {
			return r, r.fault(i, err)
		}
	}
	return r, nil
}

// readFile returns errors without the path. It opens no pipe, which would block.
func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file; write a file there, or a link to one")
	}
	var text []byte
	file, err := os.Open(path) //nolint:gosec // the configuration names its folder
	if err == nil {
		defer file.Close()
		text, err = io.ReadAll(io.LimitReader(file, largest+1))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w; write it, or make it readable", cause(err))
	}
	if len(text) > largest {
		return nil, fmt.Errorf("larger than %d bytes; write the certificates or the key alone", largest)
	}
	return text, nil
}

// cause returns an error of the file system without its path, which the text already has.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
