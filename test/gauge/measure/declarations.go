package measure

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// declaration is a type with its methods, or a function, constant or variable.
type declaration struct {
	name  string
	nodes []ast.Node // the type's own and those of its methods
	files map[string]bool
	lines int
	uses  map[*declaration]bool
}

// declarations are those of a package, in the order of its files.
type declarations struct {
	p     *Package
	all   []*declaration
	types map[string]*declaration
	spans []span // sorted
}

// span is where a declaration, or a part of it, is written.
type span struct {
	from, to token.Pos
	of       *declaration
}

// declarationsOf finds the declarations of a package and what they name.
func declarationsOf(p *Package) *declarations {
	d := &declarations{p: p, types: map[string]*declaration{}}
	for _, file := range p.Files {
		for _, decl := range file.Decls {
			if general, ok := decl.(*ast.GenDecl); ok {
				d.addGeneral(general)
			}
		}
	}
	for _, file := range p.Files {
		for _, decl := range file.Decls {
			if function, ok := decl.(*ast.FuncDecl); ok {
				d.addFunction(function)
			}
		}
	}
	slices.SortFunc(d.spans, func(a, b span) int { return int(a.from - b.from) })
	for _, one := range d.all {
		for _, node := range one.nodes {
			d.useAllIn(one, node)
		}
	}
	return d
}

func (d *declarations) addGeneral(general *ast.GenDecl) {
	for _, spec := range general.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			d.types[spec.Name.Name] = d.add(spec.Name.Name, spec)
		case *ast.ValueSpec:
			// Constants that one specification declares are one declaration.
			d.add(spec.Names[0].Name, spec)
		}
	}
}

func (d *declarations) addFunction(function *ast.FuncDecl) {
	if of := d.types[receiver(function)]; of != nil {
		d.extend(of, function)
		return
	}
	d.add(function.Name.Name, function)
}

// receiver returns the name of a method's type, or nothing for a function.
func receiver(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return ""
	}
	expr := function.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

func (d *declarations) add(name string, node ast.Node) *declaration {
	one := &declaration{name: name, files: map[string]bool{}, uses: map[*declaration]bool{}}
	d.all = append(d.all, one)
	d.extend(one, node)
	return one
}

func (d *declarations) extend(one *declaration, node ast.Node) {
	from, to := node.Pos(), node.End()
	begin, end := d.p.set.Position(from), d.p.set.Position(to)
	one.lines += end.Line - begin.Line + 1
	if _, isMethod := node.(*ast.FuncDecl); isMethod {
		one.files[begin.Filename] = true
	}
	one.nodes = append(one.nodes, node)
	d.spans = append(d.spans, span{from, to, one})
}

// at returns the declaration that an object of the package is part of: itself, or
// the type whose method or field it is.
func (d *declarations) at(object types.Object) *declaration {
	if object == nil || object.Pkg() != d.p.types || object.Parent() != nil && object.Parent() != d.p.types.Scope() {
		return nil // another package's, or a local one
	}
	pos := object.Pos()
	i, found := slices.BinarySearchFunc(d.spans, pos, func(s span, pos token.Pos) int { return int(s.from - pos) })
	if !found {
		i--
	}
	if i < 0 || pos >= d.spans[i].to {
		return nil // in a generated file
	}
	return d.spans[i].of
}

// useAllIn notes that a declaration uses all that a part of the syntax names.
func (d *declarations) useAllIn(one *declaration, node ast.Node) {
	ast.Inspect(node, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok {
			d.use(one, d.at(d.p.info.Uses[ident]))
		}
		return true
	})
}

func (d *declarations) use(one, other *declaration) {
	if other != nil && other != one {
		one.uses[other] = true
	}
}

// largestCircle returns the declarations that all reach each other and have the
// most lines together.
func (d *declarations) largestCircle() (circle []*declaration, lines int) {
	for _, found := range circles(d.all) {
		sum := 0
		for _, one := range found {
			sum += one.lines
		}
		if len(found) > 1 && sum > lines {
			circle, lines = found, sum
		}
	}
	return circle, lines
}

// circles returns the strongly connected components, by Tarjan's algorithm.
func circles(all []*declaration) (found [][]*declaration) {
	number, low, onStack := map[*declaration]int{}, map[*declaration]int{}, map[*declaration]bool{}
	var stack []*declaration
	var visit func(*declaration)
	visit = func(one *declaration) {
		number[one] = len(number) + 1
		low[one] = number[one]
		stack = append(stack, one)
		onStack[one] = true
		for other := range one.uses {
			if number[other] == 0 {
				visit(other)
				low[one] = min(low[one], low[other])
			} else if onStack[other] {
				low[one] = min(low[one], number[other])
			}
		}
		if low[one] < number[one] {
			return
		}
		begin := slices.Index(stack, one)
		component := slices.Clone(stack[begin:])
		stack = stack[:begin]
		for _, member := range component {
			onStack[member] = false
		}
		found = append(found, component)
	}
	for _, one := range all {
		if number[one] == 0 {
			visit(one)
		}
	}
	return found
}

func (d *declarations) linesOfFiles() (n int) {
	for _, file := range d.p.Files {
		n += d.p.set.File(file.FileStart).LineCount()
	}
	return n
}
