package get

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/spf13/cobra"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/client"
)

// options are the arguments and flags of the command.
type options struct {
	server    server
	word      string // for the kind
	kind      string
	known     bool // the kind is in a table
	name      string
	namespace string
	source    string
	watch     bool
	format    term.Format
	timeout   term.Timeout // zero is none
}

// Command returns the command.
func Command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "get KIND [NAME]",
		Short: "Print or watch the records of a running Isthmus, or the merged services",
		Long: `Get prints the records of one kind, or of one name, from the output watch of a running
Isthmus. Records are what sources read: services, endpoints, workloads, scopes, splits,
consumptions, kinds that sources carry, such as DestinationRule, and the sources and holds
of Isthmus itself. What Isthmus makes of all sources is in mergedservices, whose names are
hosts, and mergedendpoints. A kind is written as in kubectl: in upper or lower case, in the
plural, or short (svc, ep, wl, msvc, mep).

It prints nothing before Isthmus knows the records: it names the sources that it waits for
on the error output. If Isthmus no longer waits for a source, it says that records of that
source may be missing. Several sources can have a record of one name: all are printed.

With --watch it goes on, and prints a line for each record that is added, modified or
deleted since. A change that is replaced before it could be printed is left out. It
connects again after an interruption, and says so on the error output. With -o json each
event is a line, and with -o yaml a document, with its type and object.

TLS is used if any of its flags is set.

Exit status: 0 the records were printed, or there are none; 1 there is no record of that
name, or no answer; 2 wrong usage.`,
		Example: "  isthmus get services\n  isthmus get endpoints -n shop --source legacy\n  isthmus get mergedservice reviews.example.com -o yaml\n  isthmus get mergedendpoints --watch",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			o.take(args)
			return run(c, &o)
		},
	}
	o.server.add(c)
	c.Flags().StringVarP(&o.namespace, "namespace", "n", "", "only records of this namespace; default: of all")
	c.Flags().StringVar(&o.source, "source", "", "only records of this source")
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "print changes, too, until interrupted")
	term.TimeoutFlag(c, &o.timeout, 0, "how long to wait until the records are known; default: as long as it takes")
	c.Flags().Lookup("timeout").DefValue = "" // a time of zero would read as no wait
	term.FormatFlag(c, &o.format)
	complete(c, &o)
	return c
}

// take reads the arguments.
func (o *options) take(args []string) {
	o.word = args[0]
	o.kind, o.known = kindOf(o.word)
	if len(args) > 1 {
		o.name = args[1]
	}
}

// filter selects the records, and further ones whose names begin in the same way.
func (o *options) filter() *resourcev1alpha1.Filter {
	return &resourcev1alpha1.Filter{Kind: o.kind, Source: o.source, Namespace: o.namespace, NamePrefix: o.name}
}

// selects reports whether a record has the wanted name.
func (o *options) selects(r *resourcev1alpha1.Record) bool {
	return o.name == "" || r.GetRef().GetName() == o.name
}

// run prints the records once they are known, and their changes with --watch.
func run(c *cobra.Command, o *options) error {
	if isMerged(o.kind) && o.source != "" {
		return fmt.Errorf("--source selects nothing of kind %s, which is made of all sources; leave it out", o.kind)
	}
	conn, err := o.server.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(c.Context())
	replica := client.New(conn, o.filter())
	var running sync.WaitGroup
	running.Go(func() { _ = replica.Run(ctx) }) // the replica keeps the error
	defer func() { cancel(); running.Wait() }()

	told := &announcer{out: c.ErrOrStderr(), options: o}
	view, err := known(ctx, o, replica, told)
	if err != nil {
		return term.Wrong(err)
	}
	told.incomplete(replica)
	if o.watch {
		return term.Wrong(follow(ctx, c, o, replica, told))
	}
	return printAll(c, o, view)
}

// known returns the first view. It says on the error output what it waits for. Any error of
// the connection ends it.
func known(ctx context.Context, o *options, replica *client.Replica, told *announcer) (*client.View, error) {
	var timeout <-chan time.Time
	if o.timeout > 0 {
		timeout = time.After(time.Duration(o.timeout))
	}
	for {
		changed := replica.Changed()
		if view := replica.View(); view != nil {
			return view, nil
		}
		_, why := replica.Known()
		if isOfCall(why) && ctx.Err() == nil {
			return nil, o.server.explain(why)
		}
		told.waiting(replica)
		// Cases: the replica has another state; the time is over; the command was interrupted.
		select {
		case <-changed:
		case <-timeout:
			return nil, fmt.Errorf("%s has no complete records after %s: %w; nothing was printed; increase --timeout, or look at 'isthmus sources'", o.server.address, o.timeout.String(), why)
		case <-ctx.Done():
			return nil, errors.New("interrupted before the records were known; nothing was printed")
		}
	}
}

// printAll prints the selected records of a view.
func printAll(c *cobra.Command, o *options, view *client.View) error {
	records := []message{}
	var rows [][]string
	for r := range selected(o, view.All()) {
		if o.format == term.AsTable {
			rows = append(rows, values(o.kind, r))
		} else {
			records = append(records, message{r})
		}
	}
	if len(records)+len(rows) == 0 {
		if o.name != "" {
			return term.Wrong(errors.New(o.nothing()))
		}
		term.Say(c.ErrOrStderr(), "%s\n", o.nothing())
	}
	return term.Print(c, o.format, records, func() error {
		if len(rows) == 0 {
			return nil
		}
		return term.Table(c, headings(o.kind), rows)
	})
}

func selected(o *options, all iter.Seq[*resourcev1alpha1.Record]) iter.Seq[*resourcev1alpha1.Record] {
	return func(yield func(*resourcev1alpha1.Record) bool) {
		for r := range all {
			if o.selects(r) && !yield(r) {
				return
			}
		}
	}
}

// nothing says that there are no such records.
func (o *options) nothing() string {
	text := "no records of kind " + o.kind
	if o.name != "" {
		text = fmt.Sprintf("no %s %q", o.kind, o.name)
	}
	if o.namespace != "" {
		text += " in namespace " + o.namespace
	}
	if o.source != "" {
		text += " of source " + o.source
	}
	if o.name != "" {
		text += "; 'isthmus get " + plural(o.kind) + "' lists all"
	}
	if !o.known {
		text += "; " + unknownKind(o.word)
	}
	return text
}
