// Package verdicts compares what convert/istio says of documents with what an
// API server with Istio's custom resource definitions and Istio's admission
// webhook say of the same documents.
package verdicts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"istio.io/istio/pilot/pkg/config/kube/crd"
	"istio.io/istio/pkg/config/schema/collections"
	"istio.io/istio/pkg/config/schema/resource"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

const group = "networking.istio.io"

// judge judges documents as a cluster does when kubectl applies them: the API
// server first, step by step in the order of its handler and strategy of
// custom resources, then istiod's webhook. Null in place of a list is judged as
// by a server-side apply.
type judge map[string]*definition

// judge returns why a document is rejected; nil if it is admitted. Warnings
// reject nothing.
func (o judge) judge(text []byte) error {
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return fmt.Errorf("YAML: %w", err)
	}
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("JSON: %w", err)
	}
	d := o[u.GetKind()]
	if d == nil {
		return fmt.Errorf("no definition of kind %q", u.GetKind())
	}
	if at := nullLists(u.Object, d.schema, ""); len(at) > 0 {
		return fmt.Errorf("null, and not a list: %s", strings.Join(at, ", "))
	}
	if err := d.decode(&u); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	if u.GetNamespace() == "" {
		u.SetNamespace("default")
	}
	delete(u.Object, "status") // it is a resource of its own
	if errs := d.validate(&u); len(errs) > 0 {
		return fmt.Errorf("schema: %w", errs.ToAggregate())
	}
	if err := webhook(&u); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

// nullLists returns where a document has null and the schema has a list. An API server
// drops such a null on creation, and rejects it in a server-side apply.
func nullLists(v any, s *structural.Structural, path string) (found []string) {
	switch v := v.(type) {
	case nil:
		if s.Items != nil {
			found = append(found, path)
		}
	case object:
		for _, name := range sortedKeys(v) {
			child, known := s.Properties[name]
			if !known && s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
				child, known = *s.AdditionalProperties.Structural, true
			}
			if known {
				found = append(found, nullLists(v[name], &child, path+"."+name)...)
			}
		}
	case list:
		for i, item := range v {
			if s.Items != nil {
				found = append(found, nullLists(item, s.Items, fmt.Sprintf("%s[%d]", path, i))...)
			}
		}
	}
	return found
}

// decode is what the API server does before it validates, with the strict
// field validation that kubectl asks for.
func (d *definition) decode(u *unstructured.Unstructured) error {
	kind, apiVersion := u.GetKind(), u.GetAPIVersion()
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return err
	}
	unknown = append(unknown, pruning.PruneWithOptions(u.Object, d.schema, true,
		structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, d.schema)
	if err := objectmeta.Coerce(nil, u.Object, d.schema, false, false); err != nil {
		return err
	}
	u.SetKind(kind)
	u.SetAPIVersion(apiVersion)
	if found {
		if err := objectmeta.SetObjectMeta(u.Object, meta); err != nil {
			return err
		}
	}
	defaulting.Default(u.Object, d.schema)
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("unknown fields %s", strings.Join(unknown, ", "))
	}
	return nil
}

func (d *definition) validate(u *unstructured.Unstructured) field.ErrorList {
	errs := metavalidation.ValidateObjectMetaAccessor(u, true, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResource(nil, u.Object, d.types)...)
	errs = append(errs, objectmeta.Validate(nil, u.Object, d.schema, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.schema, u.Object)...)
	if len(errs) > 0 {
		return errs
	}
	errs, _ = d.rules.Validate(context.Background(), nil, d.schema, u.Object, nil, celconfig.RuntimeCELCostBudget)
	return errs
}

// webhook is what istiod does with an admission request.
func webhook(u *unstructured.Unstructured) error {
	raw, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	var object crd.IstioKind
	if err := json.Unmarshal(raw, &object); err != nil {
		return err
	}
	gvk := object.GroupVersionKind()
	schema, ok := collections.Pilot.FindByGroupKind(resource.FromKubernetesGVK(&gvk))
	if !ok {
		return errors.New("unrecognized type")
	}
	config, err := crd.ConvertObject(schema, &object, "cluster.local")
	if err != nil {
		return err
	}
	_, err = schema.ValidateConfig(*config)
	return err
}
