package secretfile

import (
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// mostParts ends links in circles.
const mostParts = 1000

// parts yields each folder and link on the way to a file, and the file, from the root on.
// Paths are without links. The first missing part ends it.
func parts(path string) iter.Seq2[string, fs.FileInfo] {
	return func(yield func(string, fs.FileInfo) bool) {
		const slash = string(filepath.Separator)
		if !filepath.IsAbs(path) {
			here, err := os.Getwd()
			if err != nil {
				return
			}
			path = here + slash + path // not cleaned: .. goes up from where a link leads
		}
		root := filepath.VolumeName(path) + slash
		at, rest := root, strings.Split(path[len(root):], slash)
		for range mostParts {
			info, err := os.Lstat(at)
			if err != nil || !yield(at, info) {
				return
			}
			if isLink(info) {
				target, err := os.Readlink(at)
				if err != nil {
					return
				}
				if at = filepath.Dir(at); filepath.IsAbs(target) {
					at = root
				}
				rest = append(strings.Split(target, slash), rest...)
			}
			if len(rest) == 0 {
				return
			}
			at, rest = filepath.Join(at, rest[0]), rest[1:]
		}
	}
}
