// Package mcp has the messages of the Mesh Configuration Protocol, and the kinds
// of configuration that it and MCP-over-xDS carry, with their names in both.
package mcp

//go:generate go -C ../../test/tools/protoc run . ../../.. internal/mcp/mcp.proto
