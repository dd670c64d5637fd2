package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// carriedKind is of objects that Isthmus does not understand.
const carriedKind = model.Kind("WorkloadGroup")

func drawConsumption(t *rapid.T) model.Consumption {
	name := rapid.Custom(func(t *rapid.T) model.ServiceName {
		return model.ServiceName{Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), Host: rapid.SampledFrom([]string{"x.example", "y.example"}).Draw(t, "host")}
	})
	return model.Consumption{Consumer: name.Draw(t, "consumer"), Providers: model.ListOf(rapid.SliceOfN(name, 0, 3).Draw(t, "providers")...)}
}

// united is what records that are not merged into services come to, as plainly
// as it can be put: consumptions of one consumer add up, and of one object that
// is carried the one counts that came the shorter way, and then the first source's.
func (t telling) united() []string {
	uses, carried, first := map[string]map[string]bool{}, map[string]string{}, map[string]int{}
	place := func(source string) int { // behind those in the order, by name
		if i := slices.Index(t.order, source); i >= 0 {
			return i
		}
		return len(t.order) + int(source[0])
	}
	for r := range t.records() {
		switch spec := r.Spec.(type) {
		case model.Consumption:
			consumer := fmt.Sprint(spec.Consumer)
			if uses[consumer] == nil {
				uses[consumer] = map[string]bool{}
			}
			for provider := range spec.Providers.All() {
				uses[consumer][fmt.Sprint(provider)] = true
			}
		case model.Opaque:
			key, at := fmt.Sprint(r.Kind, " ", r.Namespace, "/", r.Name), 1000*r.Path.Len()+place(r.Source)
			if was, some := first[key]; !some || at < was {
				carried[key], first[key] = spec.Content, at
			}
		}
	}
	var lines []string
	for consumer, providers := range uses {
		lines = append(lines, consumer+" uses "+strings.Join(slices.Sorted(maps.Keys(providers)), ", "))
	}
	for key, content := range carried {
		lines = append(lines, key+" is "+content)
	}
	slices.Sort(lines)
	return lines
}

// lookAtUnited makes sure that the catalog has the consumptions and the carried
// objects that it should have.
func (p *play) lookAtUnited() {
	var got []string
	now := p.process.branches[0].gate.Snapshot()
	for c := range now.Consumptions() {
		var providers []string
		for _, provider := range c.Providers {
			providers = append(providers, fmt.Sprint(model.ServiceName(provider)))
		}
		slices.Sort(providers)
		got = append(got, fmt.Sprint(model.ServiceName(c.Consumer))+" uses "+strings.Join(providers, ", "))
	}
	for o := range now.Opaques() {
		got = append(got, o.Key.String()+" is "+o.Content)
	}
	slices.Sort(got)
	if want := p.telling().united(); !slices.Equal(got, want) {
		p.Fatalf("the catalog has\n%s\nbut it should have\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
