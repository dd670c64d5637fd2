package file

import (
	"strconv"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/source"
)

// Parse returns the listing of a folder with just one file, at place. The listing is
// the one a [Source] would make of the text, without a file system.
func Parse(place string, text []byte) source.Listing {
	r := newRegistry()
	r.apply(map[string]*version{place: parse(place, text, yamlpos.MaxMemory)})
	return r.listing(nil)
}

// parse reads the text of the file at place. Memory bounds the bytes for each of its
// documents.
func parse(place string, text []byte, memory int64) *version {
	v := &version{size: len(text), ignored: map[string]int{}}
	for object := range istio.ReadWithin(text, memory) {
		if object.Ignored {
			v.ignored[object.Kind]++
			continue
		}
		d := doc{where: where(place, object.Line)}
		if !object.Valid() {
			rejection := object.Rejection(place, where(place, object.Problems[0].Line))
			d.rejection = &rejection
			object.Problems = nil // the rejection contains them
		}
		d.object = object
		v.docs = append(v.docs, d)
	}
	return v
}

// where returns a line of a file, for people.
func where(place string, line int) string { return place + ":" + strconv.Itoa(line) }
