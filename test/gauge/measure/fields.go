package measure

import "go/types"

// fieldsOf counts the fields of a package's structs, each with those of its parts: of
// a struct that only one declaration uses, that one included, the fields are its own.
func (d *declarations) fieldsOf(abroad map[*declaration]bool) map[string]int {
	users := map[*declaration]int{}
	for one := range abroad {
		users[one]++
	}
	for _, one := range d.all {
		for other := range one.uses {
			users[other]++
		}
	}
	counts := map[string]int{}
	for name := range d.types {
		if of, ok := d.p.types.Scope().Lookup(name).(*types.TypeName); ok && !of.IsAlias() {
			if structure, ok := of.Type().Underlying().(*types.Struct); ok {
				counts[name] = d.countFields(structure, users, map[*declaration]bool{})
			}
		}
	}
	return counts
}

func (d *declarations) countFields(structure *types.Struct, users map[*declaration]int, seen map[*declaration]bool) (n int) {
	for field := range structure.Fields() {
		t := types.Unalias(field.Type())
		if pointer, ok := t.(*types.Pointer); ok {
			t = types.Unalias(pointer.Elem())
		}
		part, isStruct := t.Underlying().(*types.Struct)
		named, isNamed := t.(*types.Named)
		switch {
		case isStruct && !isNamed:
			n += d.countFields(part, users, seen)
		case isStruct && d.isPart(named, users, seen):
			n += d.countFields(part, users, seen)
		default:
			n++
		}
	}
	return n
}

// isPart holds for a struct with one user, which is the one that has the field.
func (d *declarations) isPart(named *types.Named, users map[*declaration]int, seen map[*declaration]bool) bool {
	one := d.at(named.Obj())
	if one == nil || users[one] != 1 || seen[one] {
		return false
	}
	seen[one] = true
	return true
}

// usedAbroad finds the declarations that other packages of the product use.
func usedAbroad(packages []*declarations) map[*declaration]bool {
	of := map[*types.Package]*declarations{}
	for _, d := range packages {
		of[d.p.types] = d
	}
	used := map[*declaration]bool{}
	for _, d := range packages {
		for _, object := range d.p.info.Uses {
			if owner := of[object.Pkg()]; owner != nil && owner != d {
				if one := owner.at(object); one != nil {
					used[one] = true
				}
			}
		}
	}
	return used
}
