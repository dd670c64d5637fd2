package istio

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

// Read yields the objects of a text in YAML or JSON, in their order: each document, and
// each item of a list. A document that is neither YAML nor JSON is one invalid object, and
// does not affect its neighbours.
func Read(text []byte) iter.Seq[Reading] {
	return ReadWithin(text, Options{Domain: DefaultDomain}, yamlpos.MaxMemory)
}

// Options are how objects are read.
type Options struct {
	Carry  Carry  // further kinds to carry
	Domain string // of the cluster's DNS, for short names of Services
}

// DefaultDomain is the domain of a cluster's DNS, if nothing names another one.
const DefaultDomain = "cluster.local"

// ReadWithin is Read with options, and with a bound on the memory for each document, in bytes.
// A larger document is one invalid object, and nothing of it is read.
func ReadWithin(text []byte, o Options, memory int64) iter.Seq[Reading] {
	return func(yield func(Reading) bool) {
		for document := range yamlpos.DocumentsWithin(text, memory) {
			if document.Broken != nil {
				if !yield(broken(document.Broken)) {
					return
				}
				continue
			}
			if !readAll(document.Root, o, yield) {
				return
			}
		}
	}
}

// FromJSON reads one object in the JSON of an API server, of any kind of the table. Domain is
// the domain of the cluster's DNS.
func FromJSON(text []byte, domain string) Reading {
	document := yamlpos.JSON(text)
	if document.Broken != nil {
		return broken(document.Broken)
	}
	return readWith(document.Root, Options{Carry{Everything}, domain}, problems{})
}

// FromMessage reads an object in its typed form. A message does not distinguish absent from
// empty or zero, so empty and zero fields count as absent. Unknown fields are ignored.
func FromMessage(o Object) Reading {
	if o.Kind() == "" {
		return Reading{Problems: []Problem{{Field: "spec", Reason: fmt.Sprintf(
			"%T is not an object that is read: use one of the messages of %s", o.Spec, Group)}}}
	}
	root := nodeOf(o)
	return readWith(&root, Options{}, problems{})
}

func broken(p *Problem) Reading { return Reading{Line: p.Line, Problems: []Problem{*p}} }

// readAll reads an object, or each object in a list.
func readAll(root *yamlpos.Node, o Options, yield func(Reading) bool) bool {
	if !isList(root) {
		return yield(readWith(root, o, problems{}))
	}
	items := root.Get("items")
	if present(items) && items.Kind() != yamlpos.List {
		p := problems{}
		p.add(top("items"), "must be a list, is %s", items.Kind())
		return yield(Reading{Line: root.Line(), Problems: p.sorted(root)})
	}
	for _, item := range items.Items() {
		if !readAll(item, o, yield) {
			return false
		}
	}
	return true
}

func isList(root *yamlpos.Node) bool {
	return root.Get("apiVersion").Text() == "v1" && root.Get("kind").Text() == "List"
}

// readWith reads one object.
func readWith(root *yamlpos.Node, o Options, p problems) Reading {
	r := Reading{Line: root.Line()}
	apiVersion := readHead(root, &r, &p)
	group, version, _ := strings.Cut(apiVersion, "/")
	of, _ := find(func(d *Definition) bool { return d.Group == group && d.Name == r.Kind })
	switch {
	case len(p.found) > 0:
	case !of.IsRead() && !o.Carry.has(of):
		r.Ignored = true
	case slices.Contains(of.Versions(), version):
		judge(root, of, o, &r, &p)
	default: // a silent skip would look like an empty registry
		p.add(top("apiVersion"), "%q is not a version of %s: use %s/%s", apiVersion, r.Kind, group, of.Version)
		if m := readMeta(root, &problems{}); m.known {
			r.Ref = m.ref(of)
		}
	}
	if len(p.found) > 0 {
		r.Problems = p.sorted(root)
	}
	return r
}

// readHead reads the apiVersion and kind of an object.
func readHead(root *yamlpos.Node, r *Reading, p *problems) (apiVersion string) {
	if root.Kind() != yamlpos.Map {
		p.found = root.Problems()
		p.found = append(p.found, Problem{Line: root.Line(), Reason: "a document must be a map with apiVersion, " +
			"kind and metadata, is " + root.Kind().String()})
		return ""
	}
	field := func(name string) string {
		field := root.Get(name)
		if field.Kind() != yamlpos.String || field.Text() == "" {
			p.add(top(name), "missing: every object says its apiVersion and kind, such as "+Group+"/v1 and ServiceEntry")
		}
		return field.Text()
	}
	apiVersion, r.Kind = field("apiVersion"), field("kind")
	return apiVersion
}

// ref returns the reference of the record of an object with this metadata.
func (m *meta) ref(of Definition) model.Ref {
	return model.Ref{Kind: of.RecordKind(), Key: model.Key{Namespace: m.namespace, Name: m.name}}
}

// Reading is the result of reading one object. There are four cases: the object is Ignored
// or Echoed, or it is invalid and has Problems, or it is valid and has a Spec. A valid
// object may have Rejected parts.
type Reading struct {
	// Kind is the declared kind of the object; empty if it has none.
	Kind string
	// Ref names the record that the object becomes, without a source. It is zero if the
	// metadata does not identify the object.
	Ref model.Ref
	// ResourceVersion is the API server's, if the object came from one.
	ResourceVersion string
	// Line is the first line of the object in its text, from 1; zero without a text.
	Line int

	// Ignored means that the object is of a kind that is not read, or was written by an
	// Isthmus: reading it back would make Isthmus its own source.
	Ignored bool
	// Echoed means that the object came through the Isthmus that reads it, and is left out;
	// [Reading.WithoutEchoes] sets it.
	Echoed bool
	// Problems are all faults of an invalid object, in the order of its text.
	Problems []Problem
	// Undecoded means that its content cannot be decoded at all: it is no message of its kind.
	// [FromResource] sets it.
	Undecoded bool

	// Rejected are the parts of a valid object that were left out. Of an object that a registry
	// made, they are bad endpoints, labels of endpoints, and ports that no endpoint serves. Of a
	// TrafficSplit, they are the matches, without which it has no effect.
	Rejected []Problem

	// Spec is the specification of the record of a valid object. Owned are the records that it
	// owns: the endpoints in a ServiceEntry.
	Spec  model.Spec
	Owned []Owned
	// Path is the resource's path. PortPaths are the different paths of a service's ports, by
	// number.
	Path      model.Path
	PortPaths map[uint32]model.Path
}

// Owned is a record that another one owns.
type Owned struct {
	Name string // of the record: its owner's name, a slash, and a distinguishing suffix
	Spec model.Spec
	Path model.Path
}

// Valid reports whether the object is valid, and not ignored.
func (r *Reading) Valid() bool { return r.Spec != nil }

// String returns the object's name for people, such as "ServiceEntry shop/reviews"; it is
// empty if the object is not identified.
func (r *Reading) String() string {
	if r.Ref == (model.Ref{}) {
		return ""
	}
	return title(r.Kind, r.Ref.Namespace, r.Ref.Name)
}

// Listed returns a valid object as a source lists it.
func (r *Reading) Listed(place string) model.Object {
	object := model.Object{Record: model.Record{Ref: r.Ref, Path: r.Path, Place: place, Spec: r.Spec}}
	if len(r.Owned) == 0 {
		return object
	}
	object.Owned = make([]model.Record, len(r.Owned))
	for i, o := range r.Owned {
		ref := r.Ref
		ref.Kind, ref.Name = model.KindEndpoint, o.Name
		object.Owned[i] = model.Record{Ref: ref, Owner: r.Ref, Path: o.Path, Spec: o.Spec}
	}
	return object
}

// Faults returns the problems of an invalid object, or of the parts left out of a valid one.
func (r *Reading) Faults() []Problem {
	if r.Valid() {
		return r.Rejected
	}
	return r.Problems
}

// Rejection returns the rejection of an object with [Reading.Faults]. where is the place of the
// first fault, for people.
func (r *Reading) Rejection(place, where string) model.Rejection {
	faults := r.Faults()
	out := model.Rejection{Ref: r.Ref, Place: place, Object: r.String(), Where: where, Field: faults[0].Field, Reason: reason(faults)}
	if split, is := r.Spec.(model.Split); is && split.NoEffect != "" {
		out.NoEffect = true
	} else if r.Valid() {
		out.Reason += "; the rest of the object is applied"
	}
	return out
}
