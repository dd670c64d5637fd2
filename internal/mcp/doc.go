// Package mcp has the messages of the Mesh Configuration Protocol, and the names that its
// peers agree on beside them.
package mcp

//go:generate go -C ../../test/tools/protoc run . ../../.. internal/mcp/mcp.proto
