package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// add adds an object completely or not at all: a fault in one of its records rejects
// the object, so that its last good version stays whole.
func (r *reading) add(o Object) {
	start := len(r.records)
	reason := r.only.excludes(o.Record)
	if reason == "" {
		reason = r.local.excludesObject(o.Record, slices.Values(o.Owned))
	}
	outside := reason != ""
	if !outside {
		reason = r.addAll(o)
	}
	if reason == "" {
		r.objects = append(r.objects, r.own(o.Record.Ref))
		return
	}
	for _, rec := range r.records[start:] {
		delete(r.at, rec.Ref)
	}
	r.records = r.records[:start]
	r.turnAway(o.Record, reason, outside)
}

// turnAway records the rejection of an object.
func (r *reading) turnAway(rec model.Record, reason string, outside bool) {
	ref := rec.Ref
	ref.Source = ""
	r.rejection = append(r.rejection, Rejection{Ref: ref, Place: rec.Place, Object: describe(ref), Where: rec.Place, Reason: reason, Outside: outside})
	// An object without a name was never stored, so no record stays for it.
	if known(ref) {
		setDefault(r.rejected, r.own(ref), fault{reason, rec.Place})
	}
}

func (r *reading) addAll(o Object) (fault string) {
	if fault := r.put(o.Record, model.Ref{}); fault != "" {
		return fault
	}
	if fault := tooManyEndpoints(o.Record.Spec, o.Owned); fault != "" {
		return fault
	}
	owner := r.own(o.Record.Ref)
	for _, rec := range r.withoutLocal(o) {
		if !belongs(rec.Ref, owner) {
			return fmt.Sprintf("%s comes with it and must be named %q in its namespace", describe(rec.Ref), owner.Name+"/…")
		}
		if !rec.Kind.MayComeWith(owner.Kind) {
			return fmt.Sprintf("%s comes with it, which records of kind %s cannot do", describe(rec.Ref), rec.Kind)
		}
		if fault := r.put(rec, owner); fault != "" {
			return describe(rec.Ref) + ", which comes with it: " + fault
		}
	}
	return ""
}

// belongs reports whether a record's name has its owner's prefix.
func belongs(ref, owner model.Ref) bool {
	return ref.Namespace == owner.Namespace && strings.HasPrefix(ref.Name, owner.Name+"/")
}

// put completes and adds one record, or returns its fault.
func (r *reading) put(rec model.Record, owner model.Ref) (fault string) {
	rec.Ref = r.own(rec.Ref)
	if _, taken := r.at[rec.Ref]; taken {
		return "another object of this kind, namespace and name comes before it: rename or remove one of them"
	}
	rec, fault = r.complete(rec, owner)
	if fault == "" {
		r.at[rec.Ref] = len(r.records)
		r.records = append(r.records, rec)
	}
	return fault
}

// complete returns a record as it is stored, without the fields that the store sets,
// or its fault.
func (r *reading) complete(rec model.Record, owner model.Ref) (_ model.Record, fault string) {
	switch {
	case rec.Kind == "":
		return rec, "its kind is missing"
	case rec.Kind.Reserved():
		return rec, fmt.Sprintf("kind %s is reserved for Isthmus itself", rec.Kind)
	case rec.Name == "":
		return rec, "its name is missing"
	case !rec.Kind.Fits(rec.Spec):
		return rec, fmt.Sprintf("its specification is a %T, which kind %s cannot have", rec.Spec, rec.Kind)
	}
	rec.UID, rec.Revision, rec.Generation = model.UID{}, 0, 0
	rec.Owner, rec.Status = owner, model.Status{}
	rec.Spec = r.only.confine(rec.Spec)
	if owner != (model.Ref{}) {
		rec.Place = ""
	}
	return rec, tooLarge(rec.Spec)
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
