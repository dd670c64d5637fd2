package laws_test

import "slices"

// revert is the configuration before the last one: what left by that comes back,
// perhaps before it was gone.
func (p *play) revert() {
	if p.former != nil {
		p.reload(p.former)
	}
}

// restart has the application begin again with another configuration: a source
// has another name by then, or is not in it.
func (p *play) restart(s step) {
	wanted := p.renamed(s.Which)
	if s.Which >= 5 && len(p.wanted) > 1 {
		at := s.Which % len(p.wanted)
		wanted = slices.Delete(slices.Clone(p.wanted), at, at+1)
	}
	p.stop(s.Keep)
	p.wanted = wanted
	p.begin()
}
