package file

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/internal/dirwatch"
	"github.com/isthmus-mesh/isthmus/source/file/documents"
)

// folder is the folder of a source, and its known content.
type folder struct {
	root      string
	most      int // folders that are read
	objects   istio.Options
	memory    *budget.Budget // for reading files
	watch     *dirwatch.Watcher
	tree      *tree // as of the last walk; nil before the first
	documents *documents.Set
}

// readAll walks the folder and reads its files. Files that disappear during the first
// reading may be the beginning of the whole folder's loss, and their documents are
// unknown. So the first reading begins anew then.
func (f *folder) readAll(ctx context.Context) (map[string]*documents.Version, error) {
	t, versions, err := f.readTree(ctx)
	for looks := 1; err == nil && f.tree == nil && (t.gone || len(versions) < len(t.files)); looks++ {
		if looks == mostLooks {
			return nil, fmt.Errorf("%s: files disappear while they are read", f.root)
		}
		t, versions, err = f.readTree(ctx)
	}
	if err != nil {
		return nil, err
	}
	f.tree = t
	if v := versions[t.single]; v != nil && v.Trouble() != "" {
		return nil, fmt.Errorf("%s: %s", f.root, v.Trouble())
	}
	f.coverBlind(versions)
	for place := range f.documents.Places() {
		if versions[place] == nil {
			versions[place] = nil
		}
	}
	return versions, nil
}

// mostLooks bounds how often the first reading of a folder begins anew.
const mostLooks = 5

// readTree walks the folder and reads its files, except files that disappear meanwhile.
func (f *folder) readTree(ctx context.Context) (*tree, map[string]*documents.Version, error) {
	t, err := walk(f.root, f.most, f.watch.Add)
	if err == nil && f.tree == nil {
		err = t.why // stored records of the files in there are unknown, so nothing can be listed
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.root, bare(err))
	}
	f.watch.Sweep()
	versions, err := readFiles(ctx, t.files, f.documents, f.objects, f.memory)
	return t, versions, err
}

// coverBlind adds rejections for the files of folders that are unreadable, or not
// read. These files are not gone: rejected, they keep their stored records, and
// everything else goes on. (At the first listing the files in an unreadable folder
// are unknown. The run fails then, since any listing would wrongly remove them.)
func (f *folder) coverBlind(versions map[string]*documents.Version) {
	stand := func(place, trouble string) {
		v := documents.Rejected(place, trouble)
		if known := f.documents.Version(place); v.Same(known) {
			v = known
		}
		versions[place] = v
	}
	const unread = "the folder cannot be read: make it readable, or move it elsewhere"
	for _, dir := range f.tree.blind {
		stand(dir, unread)
	}
	for _, link := range f.tree.outside {
		stand(link, "cannot be read: "+errOutside.Error())
	}
	if f.tree.beyond > 0 {
		stand(".", fmt.Sprintf("it has more than the %d folders that are read: divide it into several sources, or move what is no manifest elsewhere", f.most))
	}
	covered := func(place string) bool { return versions[place] == nil && f.tree.covers(place) }
	for place := range f.documents.Places() {
		if covered(place) {
			stand(place, "its folder is not read: make it readable, or move it elsewhere")
		}
	}
	for _, place := range f.documents.Unread() {
		if covered(place) {
			stand(place, "its folder is not read: make it readable, or move it elsewhere")
		}
	}
}

// differs reports whether a file differs from its version.
func (f *folder) differs(ctx context.Context, place, path string) (bool, error) {
	e, known := f.tree.files[place]
	if !known {
		_, err := os.Lstat(path)
		return err == nil, nil
	}
	was := f.documents.Version(place)
	is, err := read(ctx, place, e, was, f.objects, f.memory)
	if errors.Is(err, errGone) {
		return true, nil
	}
	return is != was, err
}
