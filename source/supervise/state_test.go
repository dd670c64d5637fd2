package supervise_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// Whoever wonders how a supervisor came to its state has one file to read for each part.
func TestStateIsAssignedInOneFile(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	parsed := map[string]*ast.File{}
	for _, f := range files {
		if name := f.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			if parsed[name], err = parser.ParseFile(fset, name, nil, parser.SkipObjectResolution); err != nil {
				t.Fatal(err)
			}
		}
	}
	for state, file := range map[string]string{"status": "status.go", "mirror": "mirror.go"} {
		fields := fieldsOf(parsed[file], state)
		if len(fields) < 4 {
			t.Fatalf("the fields of %s are %v", state, fields)
		}
		assigned := 0
		for name, other := range parsed {
			for _, target := range targetsIn(other) {
				if !fields[target.Sel.Name] {
					continue
				}
				if assigned++; name != file {
					t.Errorf("%s: %s is assigned; let a method in %s do it", fset.Position(target.Pos()), target.Sel.Name, file)
				}
			}
		}
		if assigned == 0 {
			t.Errorf("no assignment to %s was found anywhere", state)
		}
	}
}

func fieldsOf(file *ast.File, name string) map[string]bool {
	fields := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == name {
			for _, field := range spec.Type.(*ast.StructType).Fields.List {
				for _, ident := range field.Names {
					fields[ident.Name] = true
				}
			}
		}
		return true
	})
	return fields
}

// targetsIn are the fields of receivers that methods of a supervisor, of its
// parts and of its sink assign.
func targetsIn(file *ast.File) (targets []*ast.SelectorExpr) {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv == nil || len(f.Recv.List[0].Names) == 0 {
			continue
		}
		pointer, ok := f.Recv.List[0].Type.(*ast.StarExpr)
		if !ok || !isOneOf(pointer.X, "Supervisor", "sink", "status", "mirror") {
			continue
		}
		receiver := f.Recv.List[0].Names[0].Name
		ast.Inspect(f.Body, func(n ast.Node) bool {
			var left []ast.Expr
			switch n := n.(type) {
			case *ast.AssignStmt:
				left = n.Lhs
			case *ast.IncDecStmt:
				left = []ast.Expr{n.X}
			}
			for _, expr := range left {
				targets = append(targets, selected(expr, receiver)...)
			}
			return true
		})
	}
	return targets
}

// selected are the fields on the way from a receiver to what an expression names.
func selected(expr ast.Expr, receiver string) (fields []*ast.SelectorExpr) {
	for {
		switch e := expr.(type) {
		case *ast.SelectorExpr:
			fields, expr = append(fields, e), e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.StarExpr:
			expr = e.X
		case *ast.Ident:
			if e.Name != receiver {
				return nil
			}
			return fields
		default:
			return nil
		}
	}
}

func isOneOf(expr ast.Expr, names ...string) bool {
	ident, ok := expr.(*ast.Ident)
	for _, name := range names {
		if ok && ident.Name == name {
			return true
		}
	}
	return false
}
