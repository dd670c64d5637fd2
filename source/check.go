package source

import (
	"fmt"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// add takes an object, all of it or nothing: a fault in one of its records
// refuses the object, so that its last good version stays whole.
func (r *reading) add(o Object) {
	start := len(r.records)
	reason := r.addAll(o)
	if reason == "" {
		r.objects = append(r.objects, r.own(o.Record.Ref))
		return
	}
	for _, rec := range r.records[start:] {
		delete(r.at, rec.Ref)
	}
	r.records = r.records[:start]
	ref := o.Record.Ref
	ref.Source = ""
	r.refusal = append(r.refusal, Refusal{Ref: ref, Place: o.Record.Place, Object: describe(ref), Where: o.Record.Place, Reason: reason})
	// An object without a name was never stored, so nothing stays on its behalf.
	if known(ref) {
		setDefault(r.refused, r.own(ref), fault{reason, o.Record.Place})
	}
}

func (r *reading) addAll(o Object) (fault string) {
	if o.Record.Kind == model.KindSource {
		return "kind Source is reserved for Isthmus itself"
	}
	if fault := r.put(o.Record, model.Ref{}); fault != "" {
		return fault
	}
	owner := r.own(o.Record.Ref)
	for _, rec := range o.Owned {
		if rec.Namespace != owner.Namespace || !strings.HasPrefix(rec.Name, owner.Name+"/") {
			return fmt.Sprintf("%s comes with it and must be named %q in its namespace", describe(rec.Ref), owner.Name+"/…")
		}
		if fault := r.put(rec, owner); fault != "" {
			return describe(rec.Ref) + ", which comes with it: " + fault
		}
	}
	return ""
}

// put takes one record and completes it, or says what is wrong with it.
func (r *reading) put(rec model.Record, owner model.Ref) (fault string) {
	rec.Ref = r.own(rec.Ref)
	switch _, taken := r.at[rec.Ref]; {
	case rec.Kind == "":
		return "its kind is missing"
	case rec.Name == "":
		return "its name is missing"
	case !fits(rec.Kind, rec.Spec):
		return fmt.Sprintf("its specification is a %T, which kind %s cannot have", rec.Spec, rec.Kind)
	case taken:
		return "another object of this kind, namespace and name comes before it: rename or remove one of them"
	}
	rec.UID, rec.Revision, rec.Generation, rec.Lease = model.UID{}, 0, 0, ""
	rec.Owner, rec.Status = owner, model.Status{}
	if owner != (model.Ref{}) {
		rec.Place = ""
	}
	if rec.Origin == "" { // else it entered another Isthmus before this one
		rec.Origin = r.origin
	}
	r.at[rec.Ref] = len(r.records)
	r.records = append(r.records, rec)
	return ""
}

// fits reports whether records of a kind may say spec, as the codec of package
// model would read it back.
func fits(kind model.Kind, spec model.Spec) bool {
	switch kind {
	case model.KindService:
		return isA[model.Service](spec)
	case model.KindEndpoint:
		return isA[model.Endpoint](spec)
	case model.KindWorkload:
		return isA[model.Workload](spec)
	case model.KindScope:
		return isA[model.Scope](spec)
	case model.KindConsumption:
		return isA[model.Consumption](spec)
	case model.KindSource:
		return isA[model.SourceMark](spec)
	default:
		return isA[model.Opaque](spec)
	}
}

func isA[S model.Spec](spec model.Spec) bool {
	_, ok := spec.(S)
	return ok
}

func setDefault[K comparable, V any](m map[K]V, key K, value V) {
	if _, ok := m[key]; !ok {
		m[key] = value
	}
}

// describe names an object as people do: "Service default/reviews".
func describe(ref model.Ref) string {
	name := ref.Name
	if ref.Namespace != "" {
		name = ref.Namespace + "/" + name
	}
	return strings.TrimSpace(string(ref.Kind) + " " + name)
}
