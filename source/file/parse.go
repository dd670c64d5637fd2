package file

import "github.com/isthmus-mesh/isthmus/source"

// Parse returns the listing of a folder that holds just one file, at place.
// It is what a [Source] says of the text, without a file system.
func Parse(place string, text []byte) source.Listing {
	r := newRegistry()
	r.apply(map[string]*version{place: parse(place, text)})
	return r.listing(nil)
}
