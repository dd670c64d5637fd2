// Package chart renders the chart of Isthmus, as Helm does before it installs
// anything.
package chart

import (
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// Document is one object as it is rendered.
type Document struct {
	File string // the template it comes from
	Text string // YAML; without an object if it is but a comment
}

// Render renders the chart in a folder for a release in a namespace, with
// values as a user writes them.
func Render(folder, release, namespace, values string) ([]Document, error) {
	c, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: release, Namespace: namespace}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	var documents []Document
	for file, text := range files {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---") {
			documents = append(documents, Document{file, document})
		}
	}
	slices.SortStableFunc(documents, func(a, b Document) int { return strings.Compare(a.File, b.File) })
	return documents, nil
}
