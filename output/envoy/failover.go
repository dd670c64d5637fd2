package envoy

// failsOver reports whether a host's endpoints are used by how near they are. Without
// outlier detection an Envoy would not find out that those that are near fail.
func (p *Policy) failsOver() bool {
	return p.OutlierDetection != nil && (p.LocalityFailover == nil || *p.LocalityFailover)
}

func (p *Policy) validateFailover(f *faults, at string, detection *OutlierDetection) {
	if p.LocalityFailover != nil && *p.LocalityFailover && detection == nil {
		f.add(at+".localityFailover", "needs outlierDetection, without which nobody finds out that near endpoints fail; add it, such as outlierDetection: {}")
	}
}

// rank gives the groups their priorities by the distance from a client. Priorities
// follow each other without gaps: clients reject an assignment that leaves one out.
func (d *draft) rank() {
	var inUse [distances]bool
	for _, g := range d.groups {
		inUse[g.distance] = true
	}
	var priorities [distances]uint32
	next := uint32(0)
	for at, used := range inUse {
		priorities[at] = next
		if used {
			next++
		}
	}
	for _, g := range d.groups {
		g.priority = priorities[g.distance]
	}
}
