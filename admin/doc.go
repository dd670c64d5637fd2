// Package admin answers operators and their tools: health, metrics and the HTTP API with
// the shapes in docs/reference/admin.md.
//
// It only reads, with one exception: an operator may release a source's held records. All
// data is taken from the parts at the time of the request. It can therefore neither delay
// the data path nor disagree with it. It belongs to the floor above the outputs and knows
// none of them by name.
package admin
