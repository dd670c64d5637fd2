package catalog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/golden"
)

// Each transcript is a series of commits: files that end in .in hold the
// records of one commit, one to a line, those to delete behind a "-"; the file
// .out after each says what the catalog made of it. The file "order" names the
// sources in merge order, "look" the namespaces whose view is shown, with ""
// for that of nobody in particular.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	golden.Run(t, retell)
}

// retell returns the transcript with the outcomes as they are now.
func retell(t *testing.T, story *txtar.Archive) *txtar.Archive {
	t.Helper()
	out := &txtar.Archive{Comment: story.Comment}
	var order, look []string
	var builder *catalog.Builder
	for _, file := range story.Files {
		switch {
		case file.Name == "order":
			order = strings.Fields(string(file.Data))
		case file.Name == "look":
			look = strings.Fields(string(file.Data))
		case strings.HasSuffix(file.Name, ".out"):
			continue // out anew after its .in
		case !strings.HasSuffix(file.Name, ".in"):
			t.Fatalf("%s: neither order, look, .in nor .out", file.Name)
		}
		out.Files = append(out.Files, file)
		stem, isStep := strings.CutSuffix(file.Name, ".in")
		if !isStep {
			continue
		}
		if builder == nil {
			builder = catalog.NewBuilder(order)
		}
		revision := builder.Snapshot().Revision + 1
		change := builder.Apply(revision, readCommit(t, file, revision))
		outcome := dump(builder.Snapshot(), change, look)
		out.Files = append(out.Files, txtar.File{Name: stem + ".out", Data: []byte(outcome)})
	}
	return out
}

func readCommit(t *testing.T, file txtar.File, revision uint64) []model.Event {
	t.Helper()
	var events []model.Event
	for i, line := range strings.Split(string(file.Data), "\n") {
		line = strings.TrimSpace(line)
		event, err := readEvent(line, revision)
		if err != nil {
			t.Fatalf("%s, line %d: %v", file.Name, i+1, err)
		}
		if event != nil {
			events = append(events, event)
		}
	}
	return events
}

func readEvent(line string, revision uint64) (model.Event, error) {
	if line == "" || strings.HasPrefix(line, "#") {
		return nil, nil
	}
	if gone, ok := strings.CutPrefix(line, "-"); ok {
		var ref model.Ref
		err := json.Unmarshal([]byte(gone), &ref)
		return model.Delete{Record: owned(model.Record{Ref: ref}), Revision: revision}, err
	}
	r, err := model.Decode([]byte(line))
	if err == nil && r.Key == (model.Key{}) {
		err = fmt.Errorf("no key: %s", line)
	}
	r.Revision = revision
	return model.Upsert{Record: owned(r)}, err
}
