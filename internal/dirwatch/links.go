package dirwatch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const maxLinks = 40 // as many as Linux follows

// Resolve follows the links of an absolute path and returns the path without links. It
// calls link with each link on the way, and with the part that is missing at the end. When
// one of them is replaced, the path leads to another file.
func Resolve(abs string, link func(actual string)) (string, error) {
	separator := string(filepath.Separator)
	at, rest, links := separator, strings.Split(abs, separator), 0
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
		if links++; links > maxLinks {
			return "", errors.New("links lead in a circle")
		}
		link(next)
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			at = separator
		}
		rest = append(strings.Split(target, separator), rest...)
	}
	return at, nil
}
