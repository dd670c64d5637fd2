package verdicts

import (
	"fmt"
	"strings"
	"testing"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// base is a specification of a kind in which the largest value at a path is
// right, if it ever is.
func base(kind string, path []string) object {
	switch kind {
	case "ServiceEntry":
		spec := object{"hosts": list{"a.example"}, "resolution": "STATIC", "endpoints": list{object{"address": "10.0.0.1"}}}
		spec["ports"] = sized(nil, []string{"ports"}, 1)
		if len(path) > 1 && path[len(path)-1] == "ports" { // those of endpoints have their names from here
			spec["ports"] = sized(nil, []string{"ports"}, 200)
		}
		if path[0] == "workloadSelector" {
			delete(spec, "endpoints")
		}
		return spec
	case "WorkloadEntry":
		return object{"address": "10.0.0.1"}
	case "WorkloadGroup":
		return object{"template": object{}, "probe": object{"exec": object{"command": list{"a"}}}}
	default:
		return object{
			"egress":  list{object{"hosts": list{"./*"}}},
			"ingress": list{object{"port": object{"number": 80, "protocol": "HTTPS"}}},
		}
	}
}

// Bounds are tried one below, at and one above, wherever the schema has one.
func TestVerdictsAgreeOnBounds(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			m := newMaker(theirs[kind])
			for _, path := range m.paths {
				for _, n := range bounds(m.at(path)) {
					spec := replace(base(kind, path), m.schema, path, func() any { return sized(m.at(path), path, n) })
					admitted := agree(t, render(object{
						"apiVersion": group + "/v1", "kind": kind, "metadata": object{"name": "x"}, "spec": spec,
					}))
					t.Logf("%s of %d: admitted is %v", strings.Join(path, "."), n, admitted)
				}
			}
		})
	}
}

// at returns the schema of a field.
func (m *maker) at(path []string) *structural.Structural {
	s := m.schema
	for _, step := range path {
		switch {
		case s.Items != nil:
			s = s.Items
		case s.AdditionalProperties != nil:
			s = s.AdditionalProperties.Structural
		default:
			child := s.Properties[step]
			s = &child
		}
	}
	return s
}

func bounds(s *structural.Structural) []int {
	if s.ValueValidation == nil {
		return nil
	}
	var out []int
	for _, bound := range []*int64{
		s.ValueValidation.MaxLength, s.ValueValidation.MaxItems, s.ValueValidation.MaxProperties,
		s.ValueValidation.MinLength, s.ValueValidation.MinItems,
	} {
		if bound != nil {
			out = append(out, max(int(*bound)-1, 0), int(*bound), int(*bound)+1)
		}
	}
	return out
}

// sized makes a value of n entries or characters.
func sized(s *structural.Structural, path []string, n int) any {
	switch {
	case s == nil || s.Items != nil:
		items := list{}
		for i := range n {
			items = append(items, nth(path[len(path)-1], i))
		}
		return items
	case s.AdditionalProperties != nil:
		entries := object{}
		for i := range n {
			entries[fmt.Sprintf("p%d", i)] = nth("*"+path[len(path)-1], i)
		}
		return entries
	case path[len(path)-1] == "address":
		return "unix:///" + x(max(n-8, 0))
	default:
		return x(n)
	}
}

// nth makes the entries of a list or, after an asterisk, of a map.
func nth(name string, i int) any {
	switch name {
	case "hosts":
		return fmt.Sprintf("h%d.example", i)
	case "addresses":
		return fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	case "endpoints":
		return object{"address": fmt.Sprintf("10.0.%d.%d", i/256, i%256), "labels": object{"app": "web"}, "ports": object{"p0": 80}, "weight": 1}
	case "ports":
		return object{"number": 1 + i, "name": fmt.Sprintf("p%d", i), "protocol": "HTTP"}
	case "*ports":
		return 80
	case "tlsCertificates":
		return object{"serverCertificate": "a"}
	default:
		return "a"
	}
}

// replace changes what is at a path, making what leads there.
func replace(at any, s *structural.Structural, path []string, change func() any) any {
	if len(path) == 0 {
		return change()
	}
	switch {
	case s.Items != nil:
		items, _ := at.(list)
		if len(items) == 0 {
			items = list{nil}
		}
		items[0] = replace(items[0], s.Items, path[1:], change)
		return items
	case s.AdditionalProperties != nil:
		return object{"p0": replace(nil, s.AdditionalProperties.Structural, path[1:], change)}
	default:
		fields, child := cloned(at), s.Properties[path[0]]
		fields[path[0]] = replace(fields[path[0]], &child, path[1:], change)
		return fields
	}
}
