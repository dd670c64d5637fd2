package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// istioDefinitions reads the custom resource definitions from the module that
// istiod is built from.
func istioDefinitions(ctx context.Context, module string) ([]*unstructured.Unstructured, error) {
	dir, err := istioDir(ctx, module)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "manifests", "charts", "base", "files", "crd-all.gen.yaml"))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, &object)
		}
	}
}

func istioDir(ctx context.Context, module string) (string, error) {
	out, err := tool(ctx, "-C", module, "mod", "download", "-json", "istio.io/istio")
	if err != nil {
		return "", err
	}
	var downloaded struct{ Dir string }
	return downloaded.Dir, json.Unmarshal(out, &downloaded)
}

// awaitServed waits until objects of a definition can be read and written. That is some
// time after its status says that it is established.
func (c *Client) awaitServed(ctx context.Context, definition *unstructured.Unstructured) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	kind, err := servedKind(definition)
	if err != nil {
		return err
	}
	for {
		_, err := c.resources.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("definition %s is not served: %w: %w", definition.GetName(), ctx.Err(), err)
		}
	}
}

// servedKind is the first version of what a definition defines that is to be served.
func servedKind(definition *unstructured.Unstructured) (kind schema.GroupVersionResource, err error) {
	kind.Group, _, _ = unstructured.NestedString(definition.Object, "spec", "group")
	kind.Resource, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		if version, _ := v.(map[string]any); version["served"] == true {
			kind.Version, _ = version["name"].(string)
			return kind, nil
		}
	}
	return kind, fmt.Errorf("definition %s serves no version", definition.GetName())
}
