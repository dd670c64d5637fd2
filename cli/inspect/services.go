package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/cli/term"
)

func newServices() *cobra.Command {
	var flags Flags
	var clients, rule bool
	var only serviceFilter
	c := &cobra.Command{
		Use:   "services [HOST] [--clients | --destination-rule]",
		Short: "Show the merged services, or one with its endpoints and where each came from",
		Long: `Services lists the services of the catalog. With a host, in upper or lower case and
with or without a final dot, it shows that service in each namespace that has it: every
record that speaks of it, and every endpoint. CHANGED is when an endpoint came or last
changed, in weight, health or labels, say, if it has changed since Isthmus read it first.
A record is stale while its newest version
is invalid, and held while its source has stopped listing it; the last good version
is served, and the reason is shown. A conflict is between two records of the service, or
with another service over what only one can have. The filters keep services to which a
source contributes, of a namespace, or with conflicts. Next, 'isthmus sources' says what was
rejected.

With --clients it lists the clients that hold resources of the service or ask for them,
each resource with its version and state. 'isthmus explain HOST' says why a client is
missing there.

With --destination-rule it prints the DestinationRule with which Istio gives each backend of
the host's split exactly its share, for kubectl. 'outputs.istio.shares: destinationRules'
writes it, and leaves DestinationRules of others alone: with kubectl, see first that nobody
has one for the host.

Exit status: 0 it was printed; 1 there is no such service, or no answer from the admin
API; 2 wrong usage.`,
		Example: "  isthmus services\n  isthmus services --source legacy --conflicts\n  isthmus services reviews.example.com\n  isthmus services reviews.example.com --clients\n" +
			"  isthmus services reviews.example.com --destination-rule | kubectl apply -f -",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if (clients || rule) && len(args) == 0 {
				return errors.New("--clients and --destination-rule need a host; 'isthmus services' lists them")
			}
			return flags.run(c, func() error {
				if clients {
					return showHolders(c, &flags, args[0])
				}
				if rule {
					return showRules(c, &flags, args[0])
				}
				return showServices(c, &flags, args, only)
			})
		},
	}
	flags.Add(c)
	flags.watchFlag(c)
	c.Flags().BoolVar(&clients, "clients", false, "list the clients that hold resources of the service")
	c.Flags().BoolVar(&rule, "destination-rule", false, "print the DestinationRule with which Istio obeys the host's shares exactly")
	c.MarkFlagsMutuallyExclusive("clients", "destination-rule")
	c.Flags().StringVar(&only.source, "source", "", "only services to which this source contributes")
	c.Flags().StringVar(&only.namespace, "namespace", "", "only services of this namespace")
	c.Flags().BoolVar(&only.conflicts, "conflicts", false, "only services with conflicts")
	completeFlag(c, "source", flags.completed(flags.sourceNames))
	c.ValidArgsFunction = flags.completed(flags.hosts)
	return c
}

// serviceFilter selects services. Its zero value selects all of them.
type serviceFilter struct {
	source, namespace string
	conflicts         bool
}

func (f serviceFilter) selects(s admin.Service) bool {
	return (f.source == "" || slices.Contains(s.Sources, f.source)) && (f.namespace == "" || s.Namespace == f.namespace) &&
		(!f.conflicts || len(s.Conflicts) > 0)
}

// showServices prints the selected services, or the services of a host with all details.
func showServices(c *cobra.Command, flags *Flags, args []string, only serviceFilter) error {
	path := "/api/v1/services"
	if len(args) == 1 {
		path += "/" + url.PathEscape(args[0])
	}
	var services []admin.Service
	if err := flags.Get(c.Context(), path, &services); err != nil {
		return err
	}
	all := len(services)
	services = slices.DeleteFunc(services, func(s admin.Service) bool { return !only.selects(s) })
	if len(services) == 0 && only.source != "" {
		if err := unknownSource(flags, c, only.source); err != nil {
			return err
		}
	}
	noMatch(c, all, len(services), "service")
	return term.Print(c, flags.Format, services, func() error {
		if len(args) == 1 {
			return printService(c, services)
		}
		return printServices(c, services)
	})
}

func printServices(c *cobra.Command, services []admin.Service) error {
	heading := []string{"host", "namespace", "ports", "healthy", "sources", "conflicts", "revision"}
	stale := slices.ContainsFunc(services, func(s admin.Service) bool { return s.Stale > 0 })
	if stale {
		heading = append(heading, "stale")
	}
	var rows [][]string
	for _, s := range services {
		row := []string{
			s.Host, s.Namespace, ports(s), healthy(s.Endpoints),
			strings.Join(s.Sources, ","), strconv.Itoa(len(s.Conflicts)), strconv.FormatUint(s.Revision, 10),
		}
		if stale {
			row = append(row, strconv.Itoa(s.Stale))
		}
		rows = append(rows, row)
	}
	return term.Table(c, heading, rows)
}

// healthy counts the endpoints of a service for a cell of a table.
func healthy(n admin.Counts) string {
	text := fmt.Sprintf("%d/%d", n.Healthy, n.Total)
	if n.Unserved > 0 {
		text += fmt.Sprintf(", %d unserved", n.Unserved)
	}
	return text
}

func ports(s admin.Service) string {
	var list []string
	for _, p := range s.Ports {
		text := fmt.Sprintf("%d/%s", p.Number, p.Protocol)
		if p.Resolution != "" {
			text += "(" + p.Resolution + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, ",")
}

func printService(c *cobra.Command, services []admin.Service) error {
	out := c.OutOrStdout()
	for i, s := range services {
		if i > 0 {
			fmt.Fprintln(out)
		}
		term.Say(out, "%s in namespace %s: %s, ports %s, %d of %d endpoints healthy, revision %d\n",
			s.Host, s.Namespace, s.Resolution, ports(s), s.Endpoints.Healthy, s.Endpoints.Total, s.Revision)
		if at := changed(s.LastChanged); at != "" {
			term.Say(out, "  last changed at %s\n", at)
		}
		if len(s.ExportTo) > 0 {
			term.Say(out, "  exported to %s\n", strings.Join(s.ExportTo, ", "))
		}
		for _, b := range s.Shares {
			term.Say(out, "  port %d: %s\n", b.ServicePort, Share(b))
			if len(b.Zones) > 0 {
				term.Say(out, "    with near endpoints first: %s\n", sharesInZones(b.Zones))
			}
		}
		for _, r := range s.Records {
			term.Say(out, "  from %s%s\n", r.Record, contribution(r))
		}
		for _, f := range s.Conflicts {
			term.Say(out, "  conflict over %s: %s\n", over(f), f.Reason)
		}
		for _, n := range s.NotOffered {
			term.Say(out, "  not offered to %s clients: %s\n", n.Kind, n.Reason)
		}
		if n := s.Endpoints.Unserved; n > 0 {
			term.Say(out, "  %d healthy but given to no client: see the column UNSERVED\n", n)
		}
		fmt.Fprintln(out)
		if err := printInstances(c, s.Instances); err != nil {
			return err
		}
	}
	return nil
}

// changed returns the time of a change; nothing if it is unknown.
func changed(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format("2006-01-02 15:04:05.000")
}

// Share describes the share of a backend, such as "source legacy asks for 90 % of the calls,
// gets 90 %, with 3 healthy endpoints".
func Share(s admin.Share) string {
	text := fmt.Sprintf("%s asks for %.4g %% of the calls, gets %.4g %%, with %s",
		Backend(s.Host, s.Source, s.Labels), 100*s.Asked, 100*s.Effective, term.Count(s.Usable, "healthy endpoint"))
	if s.LeftOut != "" {
		text += ", left out: " + s.LeftOut
	}
	return text
}

// Backend describes a backend by the keys that it has in the configuration.
func Backend(host, source string, labels map[string]string) string {
	var of []string
	if host != "" {
		of = append(of, "host "+host)
	}
	if source != "" {
		of = append(of, "source "+source)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		of = append(of, name+"="+labels[name])
	}
	return cmp.Or(strings.Join(of, " "), "the host itself")
}

// sharesInZones describes the shares of a backend, such as "eu/a 90 %, eu/b 0 %".
func sharesInZones(zones []admin.ZoneShare) string {
	var list []string
	for _, z := range zones {
		list = append(list, fmt.Sprintf("%s/%s %g %%", z.Region, z.Zone, math.Round(1000*z.Effective)/10))
	}
	return strings.Join(list, ", ")
}

func contribution(r admin.Contributor) string {
	var b strings.Builder
	if r.Place != "" {
		b.WriteString(" in " + r.Place)
	}
	b.WriteString(via(r.Path))
	if r.LeftOut != "" {
		b.WriteString(", left out: " + r.LeftOut)
	}
	if r.Held != "" {
		fmt.Fprintf(&b, ", held for %s: %s", r.Age, r.Held)
	}
	if r.Stale != "" {
		fmt.Fprintf(&b, ", stale for %s, its last good version is served: %s", r.Age, r.Stale)
	}
	return b.String()
}

// via names the Isthmuses that a record came through.
func via(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return " via " + strings.Join(path, ", ")
}

func printInstances(c *cobra.Command, instances []admin.EndpointClaim) error {
	header := []string{"port", "endpoint", "health", "locality", "record", "changed"}
	left := slices.ContainsFunc(instances, func(e admin.EndpointClaim) bool { return e.Unserved != "" })
	if left {
		header = append(header, "unserved")
	}
	var rows [][]string
	for _, e := range instances {
		row := instanceRow(e)
		if left {
			row = append(row, term.OrDash(e.Unserved))
		}
		rows = append(rows, row)
	}
	return term.Table(c, header, rows)
}

func instanceRow(e admin.EndpointClaim) []string {
	address := term.OrDash(e.Address)
	if e.Port != 0 && e.Address != "" {
		address = net.JoinHostPort(e.Address, strconv.FormatUint(uint64(e.Port), 10))
	}
	if e.Network != "" {
		address += " in " + e.Network
	}
	health := e.Health
	switch {
	case !e.Counts:
		health = "(also " + health + ")"
	case e.ServedHealth != "":
		health = fmt.Sprintf("%s (its source is stale; %s elsewhere, and so served)", health, e.ServedHealth)
	}
	record := e.Record + via(e.Path)
	if e.Held {
		record += " (held)"
	}
	return []string{strconv.FormatUint(uint64(e.ServicePort), 10), address, health, term.OrDash(e.Locality), record, term.OrDash(changed(e.LastChanged))}
}

// over returns the field of a conflict, with its owner and loser if these are two records.
func over(c admin.Conflict) string {
	if c.Kept == c.Lost {
		return c.Field
	}
	return fmt.Sprintf("%s: %s wins over %s", c.Field, c.Kept, c.Lost)
}
