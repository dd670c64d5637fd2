package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// racing prints the packages of the product that start goroutines, or share data by locks and
// atomics: in all others the race detector has nothing to find. The packages below test/ and the
// demo attack a program that is built without it.
func racing(ctx context.Context) error {
	out, err := output(ctx, "go", "list", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{join .GoFiles \" \"}}\t{{join .Imports \" \"}}", "./...")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.Contains(f[0], "/test/") || strings.HasSuffix(f[0], "/demo") {
			continue
		}
		shares := slices.ContainsFunc(strings.Fields(f[3]), func(i string) bool {
			return i == "sync" || i == "sync/atomic" || strings.HasPrefix(i, "golang.org/x/sync/")
		})
		if shares || slices.ContainsFunc(strings.Fields(f[2]), func(name string) bool { return starts(filepath.Join(f[1], name)) }) {
			fmt.Println(f[0])
		}
	}
	return nil
}

// starts reports whether a file has a go statement.
func starts(name string) (found bool) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return true // let the race detector's build say it
	}
	ast.Inspect(file, func(n ast.Node) bool {
		_, is := n.(*ast.GoStmt)
		found = found || is
		return !found
	})
	return found
}
