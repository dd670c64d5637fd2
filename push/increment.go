package push

// base returns the version of a resource that an increment may start from: the subscriber
// has ACKed it and no later one is in flight. It is zero for a type without increments, and
// for a subscriber with an unknown version. The subscriber then gets a form that replaces
// any version.
func (d *draft) base(name string, p pending) Version {
	if !d.info.Increments || d.mode != Delta || p.again() {
		return Version{}
	}
	h := d.holding(name)
	if h == nil || h.known != sent || h.serial > serialOf(d.landed) {
		return Version{}
	}
	return h.Version
}
