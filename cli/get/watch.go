package get

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/client"
	"github.com/isthmus-mesh/isthmus/internal/plain"
)

// message is a record in the JSON form of the API.
type message struct{ record *resourcev1alpha1.Record }

// MarshalJSON implements [json.Marshaler].
func (m message) MarshalJSON() ([]byte, error) { return protojson.Marshal(m.record) }

// event is a change of a record as data, in the form of Kubernetes' watch events.
type event struct {
	Type   string  `json:"type"`
	Object message `json:"object"`
}

// eventOf returns the event of a change between two views.
func eventOf(change client.Change) event {
	switch {
	case change.Before == nil:
		return event{"ADDED", message{change.After}}
	case change.After == nil:
		return event{"DELETED", message{change.Before}}
	default:
		return event{"MODIFIED", message{change.After}}
	}
}

// follow prints the records, and then their changes, until ctx ends or the watch cannot go
// on.
func follow(ctx context.Context, c *cobra.Command, o *options, replica *client.Replica, told *announcer) error {
	printed := printer{command: c, options: o}
	var last *client.View
	for {
		changed := replica.Changed()
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		told.changes(replica)
		if view := replica.View(); view != last {
			if err := printed.changes(view, last); err != nil {
				return err
			}
			last = view
		}
		if err := replica.Err(); isOfCall(err) {
			return o.server.explain(err)
		}
		// Cases: the replica has another state; the command was interrupted.
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// printer prints events. The columns of a table keep their widths from one event to the
// next, and only grow.
type printer struct {
	command *cobra.Command
	options *options
	widths  []int
}

// changes prints the changes from one view to the next.
func (p *printer) changes(view, last *client.View) error {
	var rows [][]string
	for change := range view.Since(last) {
		e := eventOf(change)
		if !p.options.selects(e.Object.record) {
			continue
		}
		if p.options.format == term.AsTable {
			rows = append(rows, append([]string{e.Type}, values(p.options.kind, e.Object.record)...))
			continue
		}
		if err := p.data(e); err != nil {
			return err
		}
	}
	if p.options.format != term.AsTable {
		return nil
	}
	if last == nil {
		heading := strings.ToUpper(strings.Join(append([]string{"event"}, headings(p.options.kind)...), "\t"))
		rows = append([][]string{strings.Split(heading, "\t")}, rows...)
	}
	return p.table(rows)
}

// data prints an event as a line of JSON or a document of YAML.
func (p *printer) data(e event) error {
	out := p.command.OutOrStdout()
	if p.options.format == term.AsJSON {
		return json.NewEncoder(plain.JSONWriter(out)).Encode(e)
	}
	if _, err := io.WriteString(out, "---\n"); err != nil {
		return err
	}
	return term.Print(p.command, term.AsYAML, e, nil)
}

// table prints rows in one write.
func (p *printer) table(rows [][]string) error {
	for _, row := range rows {
		for i, value := range row {
			row[i] = plain.Text(value)
			if i == len(p.widths) {
				p.widths = append(p.widths, 0)
			}
			p.widths[i] = max(p.widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var b bytes.Buffer
	for _, row := range rows {
		last := len(row) - 1
		for i, value := range row[:last] {
			fmt.Fprintf(&b, "%-*s  ", p.widths[i], value)
		}
		b.WriteString(row[last] + "\n")
	}
	_, err := p.command.OutOrStdout().Write(b.Bytes())
	return err
}
