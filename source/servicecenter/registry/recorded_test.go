package registry_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// Answers that were recorded from a real registry are read as what they say.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"b09-batch-find-no-consumer":           "2 instances; 1 instances; 1 instances; denied; denied",
		"b10-batch-find-no-consumer-same-revs": "same; same; same; denied; denied",
		"b14-batch-find-after-delete-instance": "1 instances; same; same; denied; denied",
		"b20-batch-find-after-delete-version":  "0 instances; same; same; denied; denied",
		"b22-batch-find-after-delete-service":  "denied; same; same; denied; denied",
		"b23-batch-find-empty":                 "error: 400001 Invalid parameter(s) (Required services or instances)",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("..", "..", "..", "test", "testkit", "servicecenter", "testdata", file+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var recorded struct {
				Request struct {
					Body struct{ Services []any }
				}
				Response struct{ Body json.RawMessage }
			}
			if err := json.Unmarshal(text, &recorded); err != nil {
				t.Fatal(err)
			}
			got := registry.Summary(recorded.Response.Body, len(recorded.Request.Body.Services))
			if diff := cmp.Diff(want, strings.Join(got, "; ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
