// Package mcp has the messages of the Mesh Configuration Protocol. It also has the kinds of
// configuration that MCP and MCP-over-xDS carry, with their names in both.
package mcp

//go:generate go -C ../../test/tools/protoc run . ../../.. internal/mcp/mcp.proto
