package kubeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
)

// definitions say how the fields of Istio's kinds are merged, as far as writers
// meet it: a specification field by field, the ports of a ServiceEntry by name,
// every other list as a whole.
const definitions = `{
	"entry": {
		"type": "object",
		"x-kubernetes-group-version-kind": [{"group": "networking.istio.io", "version": "v1", "kind": "ServiceEntry"}],
		"properties": {
			"apiVersion": {"type": "string"}, "kind": {"type": "string"},
			"metadata": {"$ref": "#/definitions/metadata"},
			"spec": {"$ref": "#/definitions/spec"},
			"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		}
	},
	"sidecar": {
		"type": "object",
		"x-kubernetes-group-version-kind": [{"group": "networking.istio.io", "version": "v1", "kind": "Sidecar"}],
		"properties": {
			"apiVersion": {"type": "string"}, "kind": {"type": "string"},
			"metadata": {"$ref": "#/definitions/metadata"},
			"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		}
	},
	"rule": {
		"type": "object",
		"x-kubernetes-group-version-kind": [{"group": "networking.istio.io", "version": "v1", "kind": "DestinationRule"}],
		"properties": {
			"apiVersion": {"type": "string"}, "kind": {"type": "string"},
			"metadata": {"$ref": "#/definitions/metadata"},
			"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		}
	},
	"workload": {
		"type": "object",
		"x-kubernetes-group-version-kind": [{"group": "networking.istio.io", "version": "v1", "kind": "WorkloadEntry"}],
		"properties": {
			"apiVersion": {"type": "string"}, "kind": {"type": "string"},
			"metadata": {"$ref": "#/definitions/metadata"},
			"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		}
	},
	"metadata": {
		"type": "object",
		"x-kubernetes-preserve-unknown-fields": true,
		"properties": {
			"labels": {"type": "object", "additionalProperties": {"type": "string"}},
			"annotations": {"type": "object", "additionalProperties": {"type": "string"}},
			"finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
		}
	},
	"spec": {
		"type": "object",
		"x-kubernetes-preserve-unknown-fields": true,
		"properties": {
			"ports": {
				"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
				"items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"name": {"type": "string"}}}
			}
		}
	}
}`

// newOwners returns what keeps account, by kind, of who owns which fields: the
// API server's own part for that.
func newOwners() map[string]*managedfields.FieldManager {
	types, err := decode(managedfields.NewTypeConverter)
	if err != nil {
		panic(err)
	}
	owners := map[string]*managedfields.FieldManager{}
	for _, kind := range []string{"ServiceEntry", "WorkloadEntry", "Sidecar", "DestinationRule"} {
		owners[kind] = managedfieldstest.NewFakeFieldManager(types,
			schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: kind})
	}
	return owners
}

// decode calls f with the definitions, of whatever type it takes them: that
// type is of a module that nothing else here needs.
func decode[T any](f func(T, bool) (managedfields.TypeConverter, error)) (managedfields.TypeConverter, error) {
	var all T
	if err := json.Unmarshal([]byte(definitions), &all); err != nil {
		return nil, err
	}
	return f(all, true)
}

// manager is who writes, as far as a client says so.
func manager(r *http.Request) string {
	if name := r.URL.Query().Get("fieldManager"); name != "" {
		return name
	}
	name, _, _ := strings.Cut(r.UserAgent(), "/")
	return name
}

// updated notes what a client owns of an object that it has put in the place of
// another, which is nil if there was none.
func (s *Server) updated(is, said Object, by string) (Object, error) {
	owners := s.owners[fmt.Sprint(said["kind"])]
	if owners == nil {
		return said, nil
	}
	return unwrap(owners.Update(wrap(s.orEmpty(is, said)), wrap(said), by))
}

// merged is an object with what a client applies to it.
func (s *Server) merged(is, said Object, by string) (Object, error) {
	owners := s.owners[fmt.Sprint(said["kind"])]
	if owners == nil {
		return nil, fmt.Errorf("nobody can apply a %v here", said["kind"])
	}
	return unwrap(owners.Apply(wrap(s.orEmpty(is, said)), wrap(said), by, true))
}

// orEmpty is an object, or if there is none the empty one that an API server begins with.
func (s *Server) orEmpty(is, said Object) Object {
	if is != nil {
		return is
	}
	return Object{"apiVersion": said["apiVersion"], "kind": said["kind"], "metadata": Object{
		"name": metadata(said)["name"], "namespace": metadata(said)["namespace"],
	}}
}

func wrap(o Object) *unstructured.Unstructured { return &unstructured.Unstructured{Object: clone(o)} }

func unwrap(o any, err error) (Object, error) {
	if err != nil {
		return nil, err
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("it is a %T", o)
	}
	return clone(u.Object), nil
}
