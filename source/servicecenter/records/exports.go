package records

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/isthmus-mesh/isthmus/source/servicecenter/sanitize"
)

// Words of exportTo with a meaning, which are no names of namespaces.
const (
	exportHere     = "."
	exportAll      = "*"
	exportToNobody = "~"
)

// exporting selects the namespaces to which services are exported. Without templates
// all services are exported everywhere.
type exporting struct {
	templates []*template.Template
	namespace *template.Template // of the services themselves
}

// newExporting parses the templates. Each is tried on a sample, so that a template
// that can never yield a namespace is rejected at once.
func newExporting(exportTo []string, namespace *template.Template, perVersion bool) (exporting, error) {
	errs := []error{Unique("exportTo", exportTo)}
	out := exporting{namespace: namespace}
	for i, text := range exportTo {
		field := fmt.Sprintf("exportTo[%d]", i)
		if strings.Contains(text, ".Version") && !perVersion {
			errs = append(errs, fmt.Errorf("%s: %q depends on the version, but all versions are one service; "+
				"put .Version into host or namespace, too, or leave it out here", field, text))
		}
		t, err := parseTemplate(field, text)
		if err == nil && !strings.Contains(text, "{{") {
			if fault := checkExport(strings.TrimSpace(text)); fault != nil {
				err = fmt.Errorf("%s: %w", field, fault)
			}
		}
		errs = append(errs, err)
		out.templates = append(out.templates, t)
	}
	if err := errors.Join(errs...); err != nil || namespace == nil { // the namespace's own error is reported
		return exporting{}, err
	}
	if _, err := out.of(sample(), ""); err != nil {
		return exporting{}, fmt.Errorf("exportTo: %w", err)
	}
	return out, nil
}

// checkExport returns the fault of an entry of exportTo.
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

// of returns the namespaces that a service is exported to, each once and in order;
// nil means everywhere. A template that renders an empty text names no namespace.
// Rendered text is sanitized like a namespace from the namespace template.
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
		case to == own: // even if a hash was added to it
			to = exportHere
		case checkExport(to) != nil:
			to = sanitize.Namespace(to)
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
			return nil, fmt.Errorf("%q cannot be combined with others: remove it, or the others", word)
		}
	}
	return all, nil
}
