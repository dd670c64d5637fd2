package servicecenter

import (
	"fmt"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// The words of exportTo that stand for namespaces and are the names of none.
const (
	exportHere     = "."
	exportAll      = "*"
	exportToNobody = "~"
)

// exporting says to which namespaces services are exported. Without templates
// all of them are exported everywhere.
type exporting struct {
	templates []*template.Template
	namespace *template.Template // of the services themselves
}

// newExporting reads the templates. Each is tried on a sample, so that what can
// never be a namespace is found before any service is.
func newExporting(c Config) (exporting, error) {
	var out exporting
	if err := once("exportTo", c.ExportTo); err != nil {
		return exporting{}, err
	}
	namespace, err := parseTemplate("namespace", c.Namespace)
	if err != nil {
		return exporting{}, nil //nolint:nilerr // the naming says so
	}
	out.namespace = namespace
	for i, text := range c.ExportTo {
		field := fmt.Sprintf("exportTo[%d]", i)
		if strings.Contains(text, ".Version") && !perVersion(c) {
			return exporting{}, fmt.Errorf("%s: %q depends on the version, but all versions are one service; "+
				"put .Version into host or namespace, too, or leave it out here", field, text)
		}
		t, err := parseTemplate(field, text)
		if err != nil {
			return exporting{}, err
		}
		if !strings.Contains(text, "{{") {
			if err := checkExport(strings.TrimSpace(text)); err != nil {
				return exporting{}, fmt.Errorf("%s: %w", field, err)
			}
		}
		out.templates = append(out.templates, t)
	}
	if _, err := out.of(sample(), ""); err != nil {
		return exporting{}, fmt.Errorf("exportTo: %w", err)
	}
	return out, nil
}

// checkExport says what is wrong with an entry of exportTo.
func checkExport(to string) error {
	switch to {
	case exportHere, exportAll, exportToNobody:
		return nil
	}
	if len(content.IsDNS1123Label(to)) > 0 {
		return fmt.Errorf("%q is not a namespace: write one, or \".\" for the service's own, \"*\" for all, or \"~\" for none", to)
	}
	return nil
}

// of returns where a service of a namespace is exported to, each once and in order;
// or nothing for everywhere. A template that renders nothing names no namespace. What a template takes from the registry is made fit
// for a namespace as the template of the namespace itself is.
func (e exporting) of(i Identity, namespace string) ([]string, error) {
	if len(e.templates) == 0 {
		return nil, nil
	}
	own, err := render(e.namespace, i)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, t := range e.templates {
		to, err := render(t, i)
		switch {
		case err != nil:
			return nil, err
		case to == "":
			continue
		case to == own: // whatever had to be added to it to tell it from others
			to = exportHere
		case checkExport(to) != nil:
			to = sanitizeNamespace(to)
		}
		if to == namespace {
			to = exportHere
		}
		all = append(all, to)
	}
	if len(all) == 0 {
		return []string{exportToNobody}, nil
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, word := range []string{exportAll, exportToNobody} {
		if len(all) > 1 && slices.Contains(all, word) {
			return nil, fmt.Errorf("%q is beside others, but it stands alone: remove it or the others", word)
		}
	}
	return all, nil
}
