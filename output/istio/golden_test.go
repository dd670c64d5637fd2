package istio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/test/testkit/golden"
)

// TestTranslation holds what services are written as against testdata. A file
// has a comment that says what it shows, and these parts:
//
//	shardSize   optional
//	records     model records, one JSON object per line
//	objects     what they are written as
//	left-out    what is not written, and why; optional
func TestTranslation(t *testing.T) {
	t.Parallel()
	golden.Run(t, translated)
}

func translated(t *testing.T, in *txtar.Archive) *txtar.Archive {
	t.Helper()
	out := &txtar.Archive{Comment: in.Comment}
	config, builder := DefaultConfig(), catalog.NewBuilder([]string{"first", "second"})
	for _, f := range in.Files {
		switch f.Name {
		case "shardSize":
			size, err := strconv.Atoi(strings.TrimSpace(string(f.Data)))
			if err != nil {
				t.Fatal(err)
			}
			config.ShardSize = size
			out.Files = append(out.Files, f)
		case "records":
			builder.Apply(1, parse(t, f.Data))
			out.Files = append(out.Files, f)
		}
	}
	var left strings.Builder
	var objects []string
	for service := range builder.Snapshot().Services() {
		translation := config.Translate("test", service, func(string) bool { return false })
		for _, o := range translation.Objects {
			objects = append(objects, manifestOf(t, o))
		}
		if translation.Invalid != "" {
			fmt.Fprintf(&left, "%s: %s\n", service.Key, translation.Invalid)
		}
		for _, l := range translation.LeftOut {
			fmt.Fprintf(&left, "%s: %s\n", service.Key, l)
		}
	}
	if problems := istioSays(objects...); len(problems) > 0 {
		t.Error("Istio would reject:", problems)
	}
	out.Files = append(out.Files, txtar.File{Name: "objects", Data: []byte(strings.Join(objects, "---\n"))})
	if left.Len() > 0 {
		out.Files = append(out.Files, txtar.File{Name: "left-out", Data: []byte(left.String())})
	}
	return out
}

func manifestOf(t interface{ Fatal(...any) }, o object.Object) string {
	text, err := yaml.Marshal(o.Manifest())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// istioSays returns what Istio's own rules, as the file source has them, find
// wrong with manifests, and parsed what they say.
func istioSays(manifests ...string) (problems []string) {
	problems, _ = readBack(manifests...)
	return problems
}

// readBack reads what was written as a registry of manifests.
func readBack(manifests ...string) (problems []string, events []model.Event) {
	all := strings.Join(manifests, "---\n")
	all = strings.ReplaceAll(all, object.LabelManagedBy+": "+object.ManagedBy, "mine: test") // else it is passed over as our own
	listing := file.Parse("written.yaml", []byte(all))
	for _, rejection := range listing.Rejected {
		problems = append(problems, fmt.Sprintf("%s: %s: %s", rejection.Object, rejection.Field, rejection.Reason))
	}
	for _, o := range listing.Objects {
		o.Record.Source = "back"
		events = append(events, model.Upsert{Record: o.Record})
		for _, owned := range o.Owned {
			owned.Source, owned.Owner.Source = "back", "back"
			events = append(events, model.Upsert{Record: owned})
		}
	}
	return problems, events
}

func parse(t *testing.T, lines []byte) []model.Event {
	t.Helper()
	var events []model.Event
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var r model.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if r.Kind == model.KindEndpoint {
			r.Owner = model.Ref{Kind: model.KindService, Key: r.Key}
			r.Owner.Name, _, _ = strings.Cut(r.Name, "/")
		}
		events = append(events, model.Upsert{Record: r})
	}
	return events
}
