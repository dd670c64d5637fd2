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
	return h.version
}

// encodedSince returns the encoded form of a subject for a subscriber that holds some
// version; nil after a panic. The last good form of a subject will not do for an increment,
// which continues another version.
func (e *Engine) encodedSince(subject Subject, name string, from Version) *Resource {
	inc, ok := subject.(Incremental)
	if !ok {
		return e.encoded(subject, name)
	}
	var sent Subject
	if !e.panics.attempt(PanicResource, name, func() { sent = inc.Since(from) }) {
		return nil
	}
	if res := e.encoded(sent, name); res != nil && res.Version == inc.Revision() {
		return res
	}
	return nil
}

// once returns a resource as encoded for one message. Subscribers keep it under the label
// that they all share.
func (e *Engine) once(subject Subject, res *Resource) *Resource {
	u, ok := subject.(Unrepeatable)
	if !ok {
		return res
	}
	own := *res
	if !e.panics.attempt(PanicResource, res.Name, func() { own.Encoded = u.EncodeOnce() }) {
		return res
	}
	own.Heads = e.config.Frame(own.Encoded)
	return &own
}
