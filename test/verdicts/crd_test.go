package verdicts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// definition is one custom resource definition, made ready to judge.
type definition struct {
	kind   string
	schema *structural.Structural
	types  validation.SchemaValidator
	rules  *cel.Validator
}

// definitions reads those of the kinds from the module that Istio itself is
// built from. The versions of a kind have one schema.
func definitions(kinds ...string) (map[string]*definition, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/istio").Output()
	if err != nil {
		return nil, fmt.Errorf("where istio.io/istio is: %w", err)
	}
	text, err := os.ReadFile(strings.TrimSpace(string(out)) + "/manifests/charts/base/files/crd-all.gen.yaml")
	if err != nil {
		return nil, err
	}
	found := map[string]*definition{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var crd v1.CustomResourceDefinition
		if err := decoder.Decode(&crd); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		for _, kind := range kinds {
			if crd.Spec.Names.Kind != kind || crd.Spec.Group != group {
				continue
			}
			if found[kind], err = newDefinition(&crd); err != nil {
				return nil, fmt.Errorf("%s: %w", kind, err)
			}
		}
	}
	if len(found) != len(kinds) {
		return nil, fmt.Errorf("found only %d of %v", len(found), kinds)
	}
	return found, nil
}

func newDefinition(crd *v1.CustomResourceDefinition) (*definition, error) {
	var props apiextensions.CustomResourceValidation
	if err := v1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(
		crd.Spec.Versions[0].Schema, &props, nil); err != nil {
		return nil, err
	}
	schema, err := structural.NewStructural(props.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	types, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	return &definition{
		kind: crd.Spec.Names.Kind, schema: schema, types: types,
		rules: cel.NewValidator(schema, true, celconfig.PerCallLimit),
	}, nil
}
