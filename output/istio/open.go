package istio

import (
	"context"

	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
	"github.com/isthmus-mesh/isthmus/output/istio/rights"
)

var (
	_ output.Settings      = (*Config)(nil)
	_ output.APIServer     = (*Config)(nil)
	_ output.Output        = opened{}
	_ output.SourceRemover = opened{}
	_ output.Planner       = opened{}
)

// OutputKind returns the row of this output.
func OutputKind() output.Kind {
	return output.Kind{Name: "istio", New: func() output.Settings {
		c := DefaultConfig()
		return &c
	}}
}

// Open implements [output.Settings].
func (c *Config) Open(_ context.Context, env output.Env) (output.Output, error) {
	w, err := New(*c, Options{
		Instance: env.Instance, RootNamespace: env.RootNamespace, Sources: env.Sources, Restored: env.Restored, Judge: env.Judge, Written: env.ACKed, Events: env.Events, Log: env.Log,
	})
	if err != nil {
		return nil, err
	}
	return opened{w}, nil
}

// opened is a writer as an output.
type opened struct{ *Writer }

// Run implements [output.Output].
func (o opened) Run(ctx context.Context) error {
	o.Writer.Run(ctx)
	return nil
}

// Plan implements [output.Planner].
func (o opened) Plan(ctx context.Context) (p output.Plan, err error) {
	if p.Rights = o.Rights(ctx, nil); rights.LackReading(p.Rights) {
		return p, &rights.MissingError{Rights: p.Rights}
	}
	actions, left, err := o.Writer.Plan(ctx)
	if len(p.Rights.Missing) > 0 {
		p.Rights = o.Rights(ctx, plan.NamespacesOf(actions))
	}
	for _, a := range actions {
		p.Actions = append(p.Actions, output.Action{
			Verb: output.Verb(a.Verb), Object: a.String(), Reason: a.Reason, HandOver: output.Verb(a.HandOver), Diff: append([]string{}, a.Diff...),
		})
	}
	for _, o := range left {
		p.LeftOut = append(p.LeftOut, omissions(o)...)
	}
	return p, err
}
