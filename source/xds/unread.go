package xds

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// unread returns why a kind is not completely known, and the names concerned, nil for
// any. The reason is empty if all is known.
func (s *state) unread(of kind) (why string, only map[string]bool) {
	if !s.answeredAtAll(of) {
		return unanswered(of.urls[0]), nil
	}
	for _, url := range of.urls {
		if h := s.held.types[url]; h != nil && h.incomplete {
			return cmp.Or(s.whyNot(of), "not all that the server sent of it can be read"), nil
		}
	}
	for _, url := range of.urls {
		switch k := s.types[url]; {
		case k == nil || k.dropped || len(k.unspoken) == 0:
		case k.last.IsZero():
			return unanswered(url), k.unspoken
		case k.claims && (k.resumed || k.marks): // it will report whether these are gone
			return "the server has not said yet whether it still has it: not all of its own sources may have been listed", k.unspoken
		}
	}
	return "", nil
}

func (s *state) isKnown(of kind) bool {
	why, _ := s.unread(of)
	return why == ""
}

func unanswered(url string) string {
	return fmt.Sprintf("the server does not answer for %s; have it answer, with nothing if there is none", url)
}

// protect keeps the stored records of a kind that is not completely known, or only
// some names of it.
func (s *state) protect(listing *model.Listing, of kind, stored func(yield func(model.Record) bool), why string, only map[string]bool) {
	is, resources := emptyReading(of.Definition, "a/a").Ref.Kind, s.held.kind(of.Definition)
	mirror.Keep(listing, stored, func(rec model.Record) (model.Rejection, bool) {
		name := rec.Namespace + "/" + rec.Name
		if _, held := resources.Get(name); rec.Kind != is || held != nil {
			return model.Rejection{}, false
		}
		if only != nil && !only[strings.TrimPrefix(rec.Place, of.Name+"/")] {
			return model.Rejection{}, false
		}
		return model.Rejection{Object: of.Name + " " + name, Where: of.URL(), Reason: why}, true
	})
}
