package write

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
)

// fields is a set of fields in the form of managedFields. A field that is owned with its
// content has an empty set, or "." beside its subfields.
type fields = map[string]any

// inSpec is the key of the specification in a set of fields.
const inSpec = "f:spec"

// claim makes us the only owner of the specification in the managedFields of an object, and
// reports whether that changed anything. The next apply then removes fields that we do not
// set, whoever owned them. Owners of labels, annotations, finalizers and of the status
// stay, as these are not ours.
func claim(u *unstructured.Unstructured) (bool, error) {
	var others []metav1.ManagedFieldsEntry
	own, taken := applied(time.Now()), fields{}
	for _, entry := range u.GetManagedFields() {
		if isApplied(entry) {
			own = entry
			continue
		}
		spec, rest, err := split(entry)
		if err != nil {
			return false, fmt.Errorf("the managedFields of %s cannot be parsed: %w", entry.Manager, err)
		}
		if spec == nil {
			others = append(others, entry)
			continue
		}
		merge(taken, spec)
		if rest != nil {
			entry.FieldsV1 = rest
			others = append(others, entry)
		}
	}
	if len(taken) == 0 {
		return false, nil
	}
	var err error
	if own.FieldsV1, err = joined(own.FieldsV1, taken); err != nil {
		return false, err
	}
	u.SetManagedFields(append(others, own))
	return true, nil
}

// applied returns the entry of an applier that owns nothing yet.
func applied(now time.Time) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(now)
	return metav1.ManagedFieldsEntry{
		Manager: object.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: convert.Group + "/" + convert.Version,
		Time: &at, FieldsType: "FieldsV1",
	}
}

func isApplied(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == object.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

// split separates the fields of the specification from an entry. A part without fields is
// nil.
func split(e metav1.ManagedFieldsEntry) (spec fields, rest *metav1.FieldsV1, err error) {
	if e.Subresource != "" || e.FieldsV1 == nil {
		return nil, e.FieldsV1, nil
	}
	var all fields
	if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &all); err != nil {
		return nil, nil, err
	}
	spec, ok := all[inSpec].(fields)
	if !ok {
		return nil, e.FieldsV1, nil
	}
	delete(all, inSpec)
	if len(all) == 0 {
		return spec, nil, nil
	}
	rest, err = encoded(all)
	return spec, rest, err
}

// joined adds fields of the specification to the fields of an entry.
func joined(own *metav1.FieldsV1, spec fields) (*metav1.FieldsV1, error) {
	all := fields{}
	if own != nil {
		if err := json.Unmarshal(own.GetRawBytes(), &all); err != nil {
			return nil, err
		}
	}
	merge(all, fields{inSpec: spec})
	return encoded(all)
}

func encoded(all fields) (*metav1.FieldsV1, error) {
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	set := &metav1.FieldsV1{}
	set.SetRawBytes(text)
	return set, nil
}

// merge adds one set of fields to another. A field that one set has as a whole and the
// other in parts is owned as both.
func merge(into, from fields) {
	for name, more := range from {
		add, _ := more.(fields)
		has, ok := into[name].(fields)
		switch {
		case !ok:
			into[name] = maps.Clone(add)
		case len(has) == 0 && len(add) > 0:
			into[name] = maps.Clone(add)
			into[name].(fields)["."] = fields{} //nolint:forcetypeassert // it was made just now
		case len(has) > 0 && len(add) == 0:
			has["."] = fields{}
		default:
			merge(has, add)
		}
	}
}
