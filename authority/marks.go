package authority

import (
	"io/fs"
	"os"
	"time"

	"github.com/isthmus-mesh/isthmus/identity"
)

// marks tell whether the files of an authority changed since they were read.
type marks struct {
	files [6]fs.FileInfo // nil without a file
	at    time.Time      // when they were looked at
}

// settled is the age from which on the times of a file tell its changes apart: file systems
// have coarse clocks.
const settled = 2 * time.Second

// marks looks at the files that [Open] reads.
func (d folder) marks() (m marks) {
	m.at = time.Now()
	for i, name := range [len(m.files)]string{RootFile, RootKeyFile, IssuerFile, CrossFile, TokenKeyFile, identity.TokenKeysFile} {
		m.files[i], _ = os.Stat(d.path(name))
	}
	return m
}

// settledAs reports whether the files are surely unchanged since an earlier look, after which
// they were read.
func (m marks) settledAs(read marks) bool {
	for i, now := range m.files {
		was := read.files[i]
		switch {
		case now == nil && was == nil:
		case now == nil || was == nil || !os.SameFile(now, was) || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()):
			return false
		case now.ModTime().After(read.at.Add(-settled)):
			return false
		}
	}
	return true
}
