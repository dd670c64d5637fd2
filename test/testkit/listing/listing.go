// Package listing writes what a source lists for people and golden files. It
// shares nothing between calls.
package listing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Dump writes a listing for people and golden files.
func Dump(l model.Listing) string {
	var b strings.Builder
	if l.Places != nil {
		fmt.Fprintf(&b, "places %s\n", strings.Join(l.Places, " "))
	}
	for _, object := range l.Objects {
		dumpRecord(&b, "", object.Record)
		for _, owned := range object.Owned {
			dumpRecord(&b, "  ", owned)
		}
	}
	for _, r := range l.Rejected {
		fmt.Fprintf(&b, "rejected at %s", r.Where)
		if r.Object != "" {
			fmt.Fprintf(&b, ": %s", r.Object)
		}
		if r.Field != "" {
			fmt.Fprintf(&b, ": %s", r.Field)
		}
		fmt.Fprintf(&b, "\n  %s\n", strings.ReplaceAll(r.Reason, "; also ", "\n  also "))
		if (r.Ref == model.Ref{}) {
			fmt.Fprintf(&b, "  (keeps all of %s)\n", r.Place)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(l.Ignored)) {
		fmt.Fprintf(&b, "ignored %d %s\n", l.Ignored[kind], kind)
	}
	return b.String()
}

func dumpRecord(b *strings.Builder, indent string, r model.Record) {
	data, err := model.Encode(model.Record{Ref: r.Ref, Spec: r.Spec})
	if err != nil {
		panic(err)
	}
	_, spec, _ := strings.Cut(string(data), `"spec":`)
	fmt.Fprintf(b, "%s%s %s/%s", indent, r.Kind, r.Namespace, r.Name)
	if r.Place != "" {
		fmt.Fprintf(b, " in %s", r.Place)
	}
	fmt.Fprintf(b, "\n%s  %s\n", indent, strings.TrimSuffix(spec, "}"))
}
