package measure

import (
	"go/ast"
	"go/types"
)

// Behind an interface with one implementation, a field that is a function, or a
// table of functions, a use is as much a use as one by name. So each is counted, and
// a circle through one is a circle.

// indirections are the places of the product where a use has no name.
type indirections struct {
	single []string // interfaces with one implementation
	fields []string // fields that are functions
	tables []string // literals and fields that are tables of functions
}

// implementation is the only type of the product that has the methods of an interface.
type implementation struct{ of, by *types.TypeName }

// indirectionsOf finds them, and adds the uses behind them to the declarations.
func indirectionsOf(packages []*declarations) (found indirections) {
	own := map[*types.Package]*declarations{}
	for _, d := range packages {
		own[d.p.types] = d
	}
	for _, one := range singles(packages) {
		d := own[one.of.Pkg()]
		found.single = append(found.single, d.p.Path+"."+one.of.Name())
		if d == own[one.by.Pkg()] {
			d.use(d.at(one.of), d.at(one.by))
		}
	}
	for _, d := range packages {
		for _, file := range d.p.Files {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.StructType:
					found.addFields(d, own, n)
				case *ast.CompositeLit:
					if len(n.Elts) > 0 && isTable(d.p.info.TypeOf(n), own) {
						found.tables = append(found.tables, d.p.place(n))
					}
					d.useInLiteral(n)
				case *ast.AssignStmt:
					d.useInAssignment(n)
				}
				return true
			})
		}
	}
	return found
}

// singles finds the interfaces of the product that one type of the product implements.
func singles(packages []*declarations) (found []implementation) {
	var interfaces, others []*types.TypeName
	for _, d := range packages {
		for name := range d.types {
			of, ok := d.p.types.Scope().Lookup(name).(*types.TypeName)
			if !ok || of.IsAlias() {
				continue
			}
			if i, ok := of.Type().Underlying().(*types.Interface); !ok {
				others = append(others, of)
			} else if i.IsMethodSet() && i.NumMethods() > 0 {
				interfaces = append(interfaces, of)
			}
		}
	}
	for _, of := range interfaces {
		var by []*types.TypeName
		for _, other := range others {
			if implements(other.Type(), of.Type().Underlying().(*types.Interface)) {
				by = append(by, other)
			}
		}
		if len(by) == 1 {
			found = append(found, implementation{of, by[0]})
		}
	}
	return found
}

func implements(t types.Type, i *types.Interface) bool {
	return types.Implements(t, i) || types.Implements(types.NewPointer(t), i)
}

func (i *indirections) addFields(d *declarations, own map[*types.Package]*declarations, structure *ast.StructType) {
	for _, field := range structure.Fields.List {
		of := d.p.info.TypeOf(field.Type)
		for n := range max(1, len(field.Names)) {
			name := d.p.place(field)
			if len(field.Names) > 0 {
				name += " " + field.Names[n].Name
			}
			switch {
			case isFunction(of):
				i.fields = append(i.fields, name)
			case isTable(of, own):
				i.tables = append(i.tables, name)
			}
		}
	}
}

func isFunction(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Signature)
	return ok
}

// isTable holds for lists and maps of functions, and of the product's structs with
// a field that is one.
func isTable(t types.Type, own map[*types.Package]*declarations) bool {
	element := elementOf(t)
	if element == nil {
		return false
	}
	if isFunction(element) {
		return true
	}
	if pointer, ok := element.Underlying().(*types.Pointer); ok {
		element = pointer.Elem()
	}
	structure, ok := element.Underlying().(*types.Struct)
	if named, isNamed := types.Unalias(element).(*types.Named); !ok || isNamed && own[named.Obj().Pkg()] == nil {
		return false
	}
	for field := range structure.Fields() {
		if isFunction(field.Type()) {
			return true
		}
	}
	return false
}

func elementOf(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	switch t := t.Underlying().(type) {
	case *types.Slice:
		return t.Elem()
	case *types.Array:
		return t.Elem()
	case *types.Map:
		return t.Elem()
	default:
		return nil
	}
}

// carries holds for functions, and for lists and maps of them.
func carries(t types.Type) bool {
	return isFunction(t) || isFunction(elementOf(t))
}

// useInLiteral notes that a struct uses the functions that a literal puts into it,
// and a table those that are its elements.
func (d *declarations) useInLiteral(literal *ast.CompositeLit) {
	t := d.p.info.TypeOf(literal)
	if t == nil {
		return
	}
	if pointer, ok := t.Underlying().(*types.Pointer); ok {
		t = pointer.Elem() // an element of a list of pointers, whose type is left out
	}
	structure, isStruct := t.Underlying().(*types.Struct)
	named, isNamed := types.Unalias(t).(*types.Named)
	for i, element := range literal.Elts {
		value := element
		pair, keyed := element.(*ast.KeyValueExpr)
		if keyed {
			value = pair.Value
		}
		var of types.Object
		switch {
		case isStruct && keyed:
			of = d.p.info.Uses[pair.Key.(*ast.Ident)]
		case isStruct:
			of = structure.Field(i)
		case isNamed && isFunction(elementOf(t)):
			of = named.Obj()
		}
		if of != nil && (!isStruct || carries(of.Type())) {
			d.useFrom(of, value)
		}
	}
}

// useInAssignment does so for a field that is set.
func (d *declarations) useInAssignment(assignment *ast.AssignStmt) {
	if len(assignment.Lhs) != len(assignment.Rhs) {
		return
	}
	for i, left := range assignment.Lhs {
		if index, ok := left.(*ast.IndexExpr); ok {
			left = index.X
		}
		selector, ok := left.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		if field, ok := d.p.info.Uses[selector.Sel].(*types.Var); ok && field.IsField() && carries(field.Type()) {
			d.useFrom(field, assignment.Rhs[i])
		}
	}
}

func (d *declarations) useFrom(object types.Object, value ast.Expr) {
	if one := d.at(object); one != nil {
		d.useAllIn(one, value)
	}
}
