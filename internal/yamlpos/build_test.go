package yamlpos_test

import (
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// What is JSON is read as in a file. What is not is said with its line, even if
// it would be YAML.
func TestJSONTakesNothingElse(t *testing.T) {
	t.Parallel()
	document := yamlpos.JSON([]byte("{\"a\":\n [1, true, null, \"x\"]}\n"))
	if document.Broken != nil || document.Root.Get("a").Item(3).Text() != "x" || document.Root.LineOf("a[0]") != 2 {
		t.Errorf("read as %+v", document)
	}
	for text, line := range map[string]int{
		"": 1, "a: 1": 1, "{\n'a': 1}": 2, "{}\n\n{}": 3, "{\"a\": [\n": 1, "[1,\n2,\n,3]": 3, "\"\xff\"": 1,
	} {
		broken := yamlpos.JSON([]byte(text)).Broken
		if broken == nil || broken.Line != line || broken.Reason == "" {
			t.Errorf("%q: %+v, want line %d", text, broken, line)
		}
	}
}

// Nodes that did not come from a text hold what one may hold: text that is no
// UTF-8, and a name that comes twice, are problems.
func TestNodesWithoutAText(t *testing.T) {
	t.Parallel()
	number := yamlpos.NewScalar(yamlpos.Number, "80")
	root := yamlpos.NewMap([]string{"ports", "name", "name", "bad\xff"}, []yamlpos.Node{
		yamlpos.NewList([]yamlpos.Node{number}), yamlpos.NewScalar(yamlpos.String, "a\xff"), number, number,
	})
	if root.Get("ports").Item(0).Text() != "80" || root.LineOf("ports[0]") != 0 || root.Len() != 2 {
		t.Errorf("it holds %v", root.Len())
	}
	var found []string
	for _, p := range root.Problems() {
		found = append(found, p.Field+": "+p.Reason)
	}
	if got := strings.Join(found, "\n"); len(found) != 3 || strings.Count(got, "UTF-8") != 2 || !strings.Contains(got, "given twice") {
		t.Errorf("problems:\n%s", got)
	}
}
