package dirwatch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const maxLinks = 40 // as many as Linux follows

// trail has the links that are being followed. If one of them is met again, they lead in a
// circle.
type trail []step

// step is a link, and the number of parts of the path behind it.
type step struct {
	link string
	rest int
}

// with returns the trail at a link, without the links that have been followed to their end.
// It fails if the link leads in a circle.
func (t trail) with(link string, rest int) (trail, error) {
	for len(t) > 0 && rest < t[len(t)-1].rest {
		t = t[:len(t)-1]
	}
	if slices.ContainsFunc(t, func(s step) bool { return s.link == link }) {
		return nil, errCircle
	}
	return append(t, step{link, rest}), nil
}

var errCircle = errors.New("links lead in a circle")

// Resolve follows the links of an absolute path and returns the path without links. It
// calls link with each link on the way, and with the part that is missing at the end. When
// one of them is replaced, the path leads to another file.
//
// A link that leads back to itself is noticed at once: a folder may contain thousands.
func Resolve(abs string, link func(actual string)) (string, error) {
	separator := string(filepath.Separator)
	at, rest, links := separator, strings.Split(abs, separator), 0
	var open trail
	for len(rest) > 0 {
		var name string
		name, rest = rest[0], rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			link(next)
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		open, err = open.with(next, len(rest))
		if links++; err != nil || links > maxLinks {
			return "", errCircle
		}
		link(next)
		to, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(to) {
			at = separator
		}
		rest = append(strings.Split(to, separator), rest...)
	}
	return at, nil
}
