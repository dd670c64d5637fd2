package push

// Read returns the newest version of a resource as a client would be sent it, whether or not
// it is connected. It returns nil if no type has the name, if the view of the client has no
// such resource, and if the producer has published nothing.
func (e *Engine) Read(c Client, typeName, name string) *Encoded {
	table := e.table.Load()
	t, known := table.Named(typeName)
	if !known || table.types[t].producer == nil {
		return nil
	}
	latest := table.types[t].producer.world.Load()
	if latest == nil {
		return nil
	}
	var read *Encoded
	row := table.types[t].Row
	e.reader.Attempt(PanicResource, name, func() {
		if subject, found := (*latest).Find((*latest).View(row, c), row, name); found {
			encoded := subject.Encode().Joined()
			read = &encoded
		}
	})
	return read
}
