package simulation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/rig/process"
)

// serve runs the program on ServiceEntries until the test ends, and returns where it serves
// xDS. It has read all of them by then, and found nothing wrong with them. Istio goes by the
// age of objects, and Isthmus by the order of sources: so each object is a source, the
// oldest first.
func serve(t testing.TB, dir, entries, outbound string) (address string) {
	t.Helper()
	var sources strings.Builder
	documents := byAge(entries)
	for i, document := range documents {
		folder := filepath.Join(dir, fmt.Sprint("entries-", i))
		write(t, filepath.Join(folder, "entries.yaml"), document)
		fmt.Fprintf(&sources, "- {name: files-%d, only: {addresses: [0.0.0.0/0, \"::/0\"]}, localAddresses: allow, file: {path: %q}}\n", i, folder)
	}
	config := filepath.Join(dir, "isthmus.yaml")
	write(t, config, fmt.Sprintf(`
sources:
%s
outputs:
  xds: {listen: "127.0.0.1:0", envoy: {outbound: %s, unaddressed: all}}
admin: {listen: "127.0.0.1:0"}
log: {format: text}
`, sources.String(), outbound))
	isthmus := process.New(dir, "isthmus", program, "serve", "--config", config)
	t.Cleanup(isthmus.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := isthmus.Start(ctx, func(context.Context) (err error) {
		address, err = serving(isthmus.Log(), len(documents))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if wrong := complaint.FindString(isthmus.Log()); wrong != "" {
		t.Fatalf("isthmus says: %s", wrong)
	}
	return address
}

// complaint finds a line that is no information.
var complaint = regexp.MustCompile(`(?m)^.*level=(?:WARN|ERROR).*$`)

// servingLine finds the address at which Isthmus serves xDS.
var servingLine = regexp.MustCompile(`msg=serving .*xds=(\S+)`)

// serving returns the address at which Isthmus serves, once it has read all sources.
func serving(log string, sources int) (address string, err error) {
	found := servingLine.FindStringSubmatch(log)
	live := strings.Count(log, "source is live")
	if found == nil || live < sources {
		return "", fmt.Errorf("%d of %d sources are live, serving: %t", live, sources, found != nil)
	}
	return found[1], nil
}

// created finds when an object was created.
var created = regexp.MustCompile(`creationTimestamp: "([^"]*)"`)

// byAge splits objects, the oldest first. Objects that do not say their age come last.
func byAge(entries string) (documents []string) {
	for document := range strings.SplitSeq(entries, "\n---") {
		if strings.TrimSpace(document) != "" {
			documents = append(documents, document+"\n")
		}
	}
	age := func(document string) string {
		if found := created.FindStringSubmatch(document); found != nil {
			return found[1]
		}
		return "unknown" // after any digit
	}
	slices.SortStableFunc(documents, func(a, b string) int { return strings.Compare(age(a), age(b)) })
	return documents
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
