package model

import (
	"encoding/json"
	"fmt"
)

// Encode returns the stored form of a record, the same in etcd and in a
// snapshot file: JSON, with the shape of the specification given by the kind.
func Encode(r Record) ([]byte, error) { return json.Marshal(r) }

// Decode reads what [Encode] wrote. A kind it does not know is kept as
// [Opaque], so that an older Isthmus carries what a newer one stored.
func Decode(data []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("record: %w", err)
	}
	return r, nil
}

// UnmarshalJSON decodes the specification according to the kind.
func (r *Record) UnmarshalJSON(data []byte) error {
	type plain Record // drops this method
	aux := struct {
		*plain
		Spec json.RawMessage `json:"spec"`
	}{plain: (*plain)(r)}
	if err := json.Unmarshal(data, &aux); err != nil {
		return err
	}
	spec, err := decodeSpec(r.Kind, aux.Spec)
	if err != nil {
		return fmt.Errorf("%s: spec: %w", r.Ref, err)
	}
	r.Spec = spec
	return nil
}

func decodeSpec(kind Kind, data json.RawMessage) (Spec, error) {
	switch kind {
	case KindService:
		return decodeAs[Service](data)
	case KindEndpoint:
		return decodeAs[Endpoint](data)
	case KindWorkload:
		return decodeAs[Workload](data)
	case KindSource:
		return decodeAs[SourceMark](data)
	default:
		return decodeAs[Opaque](data)
	}
}

func decodeAs[S Spec](data json.RawMessage) (Spec, error) {
	var s S
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	return s, nil
}
