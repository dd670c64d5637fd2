package reading

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
)

// add adds an object completely or not at all: a fault in one of its records rejects
// the object, so that its last good version stays whole.
func (r *Reading) add(o model.Object) {
	start := len(r.Records)
	reason := r.limits.Only.Excludes(o.Record)
	if reason == "" {
		reason = r.limits.Local.ExcludesObject(o.Record, slices.Values(o.Owned))
	}
	outside := reason != ""
	if !outside {
		reason = r.addAll(o)
	}
	if reason == "" {
		r.Objects = append(r.Objects, r.own(o.Record.Ref))
		return
	}
	for _, rec := range r.Records[start:] {
		delete(r.at, rec.Ref)
	}
	r.Records = r.Records[:start]
	r.turnAway(o.Record, reason, outside)
}

// turnAway records the rejection of an object.
func (r *Reading) turnAway(rec model.Record, reason string, outside bool) {
	ref := rec.Ref
	ref.Source = ""
	r.Rejections = append(r.Rejections, model.Rejection{Ref: ref, Place: rec.Place, Object: Describe(ref), Where: rec.Place, Reason: reason, Outside: outside})
	// An object without a name was never stored, so no record stays for it.
	if known(ref) {
		setDefault(r.rejected, r.own(ref), fault{reason, rec.Place})
	}
}

func (r *Reading) addAll(o model.Object) (fault string) {
	if fault := r.put(o.Record, model.Ref{}); fault != "" {
		return fault
	}
	if fault := index.TooManyEndpoints(o.Record.Spec, o.Owned); fault != "" {
		return fault
	}
	owner := r.own(o.Record.Ref)
	for _, rec := range r.withoutLocal(o) {
		if !belongs(rec.Ref, owner) {
			return fmt.Sprintf("%s comes with it and must be named %q in its namespace", Describe(rec.Ref), owner.Name+"/…")
		}
		if !rec.Kind.MayComeWith(owner.Kind) {
			return fmt.Sprintf("%s comes with it, which records of kind %s cannot do", Describe(rec.Ref), rec.Kind)
		}
		if fault := r.put(rec, owner); fault != "" {
			return Describe(rec.Ref) + ", which comes with it: " + fault
		}
	}
	return ""
}

// belongs reports whether a record's name has its owner's prefix.
func belongs(ref, owner model.Ref) bool {
	return ref.Namespace == owner.Namespace && strings.HasPrefix(ref.Name, owner.Name+"/")
}

// put completes and adds one record, or returns its fault.
func (r *Reading) put(rec model.Record, owner model.Ref) (fault string) {
	rec.Ref = r.own(rec.Ref)
	if _, taken := r.at[rec.Ref]; taken {
		return "another object of this kind, namespace and name comes before it: rename or remove one of them"
	}
	rec, fault = r.complete(rec, owner)
	if fault == "" {
		r.at[rec.Ref] = len(r.Records)
		r.Records = append(r.Records, rec)
	}
	return fault
}

// complete returns a record as it is stored, without the fields that the store sets,
// or its fault.
func (r *Reading) complete(rec model.Record, owner model.Ref) (_ model.Record, fault string) {
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
	rec.Spec = r.limits.Network.Complete(r.limits.Only.Confine(rec.Spec))
	if owner != (model.Ref{}) {
		rec.Place = ""
	}
	return rec, index.TooLarge(rec.Spec)
}

func setDefault[K comparable, V any](m map[K]V, key K, value V) {
	if _, ok := m[key]; !ok {
		m[key] = value
	}
}

// Describe names an object as people do: "Service default/reviews".
func Describe(ref model.Ref) string {
	name := ref.Name
	if ref.Namespace != "" {
		name = ref.Namespace + "/" + name
	}
	return strings.TrimSpace(string(ref.Kind) + " " + name)
}

// addSingles adds the single records of a change. The cost depends on their number,
// and not on the number of their owners' other records.
func (r *Reading) addSingles(c model.Change) {
	r.Dropped = make(map[model.Ref]bool, len(c.OwnedDeletes))
	for _, rec := range c.OwnedUpserts {
		if r.dropLocal(rec) {
			continue
		}
		if reason := r.putSingle(rec); reason != "" {
			ref := rec.Ref
			ref.Source = ""
			r.Rejections = append(r.Rejections, model.Rejection{Ref: ref, Object: Describe(ref), Reason: reason})
		}
	}
	for _, ref := range c.OwnedDeletes {
		r.Dropped[r.own(ref)] = true
	}
}

// putSingle adds a single record, or returns its fault.
func (r *Reading) putSingle(rec model.Record) (fault string) {
	rec.Ref = r.own(rec.Ref)
	owner := r.own(rec.Owner)
	switch {
	case !known(owner):
		return "its owner is missing, without which it cannot change by itself"
	case !belongs(rec.Ref, owner):
		return fmt.Sprintf("it belongs to %s and must be named %q in its namespace", Describe(owner), owner.Name+"/…")
	}
	i, listed := r.at[rec.Ref]
	if listed && r.Records[i].Owner != owner {
		return "another object of this kind, namespace and name comes before it: rename or remove one of them"
	}
	if !listed {
		if fault = r.put(rec, owner); fault == "" {
			r.singles = append(r.singles, rec.Ref)
		}
		return fault
	}
	rec, fault = r.complete(rec, owner)
	if fault == "" {
		r.Records[i] = rec
	}
	return fault
}

// withoutLocal returns the owned records without endpoints at local addresses, and
// records a rejection for each of these.
func (r *Reading) withoutLocal(o model.Object) []model.Record {
	for i, rec := range o.Owned {
		if r.limits.Local.ExcludesEndpoint(rec) == "" {
			continue
		}
		kept := append(make([]model.Record, 0, len(o.Owned)), o.Owned[:i]...)
		for _, rec := range o.Owned[i:] {
			if reason := r.limits.Local.ExcludesEndpoint(rec); reason != "" {
				r.rejectLocal(rec, o.Record, reason)
			} else {
				kept = append(kept, rec)
			}
		}
		return kept
	}
	return o.Owned
}

func (r *Reading) rejectLocal(rec, owner model.Record, reason string) {
	ref, of := rec.Ref, owner.Ref
	ref.Source, of.Source = "", ""
	r.Rejections = append(r.Rejections, model.Rejection{
		Ref: ref, Place: owner.Place, Object: Describe(ref), Where: owner.Place, Reason: reason, Outside: true, Owner: of,
	})
}

// dropLocal rejects a single record at a local address. Its earlier version is
// deleted, since the registry reports another address now.
func (r *Reading) dropLocal(rec model.Record) (dropped bool) {
	reason := r.limits.Local.ExcludesEndpoint(rec)
	if reason == "" {
		return false
	}
	r.rejectLocal(rec, model.Record{Ref: rec.Owner}, reason)
	r.Dropped[r.own(rec.Ref)] = true
	return true
}
