package app

import (
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/gate"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// Inside is the parts of an application that its laws look at.
type Inside struct {
	Store   Records
	Disk    *store.Disk // nil if nothing survives a restart
	Judge   source.Judge
	Outputs []output.Output
	fleet   *fleet
	gate    *gate.Gate
}

// Inside returns the parts of the application.
func (a *App) Inside() Inside {
	in := Inside{Store: a.store, Disk: a.disk, Judge: a.fleet, fleet: a.fleet, gate: a.branches[0].gate}
	for _, o := range a.outputs {
		in.Outputs = append(in.Outputs, o.Output)
	}
	return in
}

// Sources returns the sources that are read now.
func (i Inside) Sources() []*supervise.Supervisor { return i.fleet.supervisors() }

// Reads reports whether a source of a name is read now.
func (i Inside) Reads(name string) bool { return i.fleet.supervisor(name) != nil }

// Snapshot returns the catalog of all sources.
func (i Inside) Snapshot() *catalog.Snapshot { return i.gate.Snapshot() }
