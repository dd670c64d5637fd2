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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// awaitEstablished waits until objects of a definition can be written.
func (c *Client) awaitEstablished(ctx context.Context, name string) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		object, err := c.Get(ctx, definitions, "", name)
		if err != nil {
			return err
		}
		if established(object) {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("definition %s is not established: %w", name, ctx.Err())
		}
	}
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}
