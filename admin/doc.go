// Package admin answers operators and their tools: health, metrics and the
// HTTP API, whose shapes are described in docs/reference/admin.md.
//
// It only reads, with one exception: an operator may release what a source holds.
// Everything it shows is taken from the parts at the time of the request, so that it
// can neither delay the data path nor disagree with it. It belongs to the floor above
// the outputs and knows none of them by name.
package admin
