package inspect

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/cli/term"
)

func newExplain() *cobra.Command {
	var flags Flags
	var client, namespace, kind string
	var labels map[string]string
	c := &cobra.Command{
		Use:   "explain HOST[:PORT]",
		Short: "Show whether a client's calls reach a service, and if not, where and why they end",
		Long: `Explain follows a call through the newest resources of a client, as the client would:
from the records of the service through exports, scopes and ports to the listener, the
route, the cluster and its endpoints. Where the way ends it says why, and what to change.
Without a port it does so for every port of the service.

The client is a connected one, named by --client; then each resource on the way is shown
with its state there. Or it is described by --namespace and --labels, as a sidecar of such
a workload that need not exist yet.

Each call is reached, unreachable, or behind: then the newest resources reach the service,
but the client NACKed one of them or has not answered yet.

Exit status: 0 every call is reached; 1 one is not, or no answer from the admin API;
2 wrong usage.`,
		Example: "  isthmus explain reviews.example.com\n  isthmus explain reviews.example.com:80 --namespace shop --labels app=web,version=v2\n" +
			"  isthmus explain reviews.example.com --client 'sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local'",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if client != "" && (c.Flags().Changed("namespace") || len(labels) > 0 || kind != "") {
				return errors.New("--client names a connected client; leave out --namespace, --labels and --kind")
			}
			query, err := explainQuery(args[0])
			if err != nil {
				return err
			}
			for name, value := range map[string]string{"client": client, "namespace": namespace, "kind": kind, "labels": pairs(labels)} {
				if value != "" && (client == "" || name == "client") {
					query.Set(name, value)
				}
			}
			return explain(c, &flags, query)
		},
	}
	flags.Add(c)
	c.ValidArgsFunction = flags.completed(flags.hosts)
	c.Flags().StringVar(&client, "client", "", "the id of a connected client")
	completeFlag(c, "client", flags.completed(flags.clientIDs))
	c.Flags().StringVar(&namespace, "namespace", "default", "the namespace of the workload")
	c.Flags().StringToStringVar(&labels, "labels", nil, "the labels of the workload, by which Sidecars select it")
	c.Flags().StringVar(&kind, "kind", "", "the kind of client, such as envoy or grpc; default: envoy")
	return c
}

// explainQuery returns the parameters for a host with or without a port.
func explainQuery(target string) (url.Values, error) {
	query := url.Values{"host": {target}}
	if !strings.Contains(target, ":") {
		return query, nil
	}
	host, port, err := net.SplitHostPort(target)
	if err != nil || host == "" {
		return nil, fmt.Errorf("%q is not a host, or a host and port such as reviews.example.com:80", target)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return nil, fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	query.Set("host", host)
	query.Set("port", port)
	return query, nil
}

func pairs(labels map[string]string) string {
	var list []string
	for key, value := range labels {
		list = append(list, key+"="+value)
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

func explain(c *cobra.Command, flags *Flags, query url.Values) error {
	var list []admin.Explanation
	if err := flags.Get(c.Context(), "/api/v1/explain?"+query.Encode(), &list); err != nil {
		return err
	}
	err := term.Print(c, flags.Format, list, func() error {
		for i, e := range list {
			if i > 0 {
				fmt.Fprintln(c.OutOrStdout())
			}
			if err := printExplanation(c, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.State != admin.StateReached {
			return term.Wrong(fmt.Errorf("%s: %s", callOf(e), e.State))
		}
	}
	return nil
}

// callOf names the call of an explanation.
func callOf(e admin.Explanation) string {
	if e.Port == 0 {
		return e.Host
	}
	return net.JoinHostPort(e.Host, strconv.FormatUint(uint64(e.Port), 10))
}

func printExplanation(c *cobra.Command, e admin.Explanation) error {
	out := c.OutOrStdout()
	term.Say(out, "%s from %s: %s\n  %s\n", callOf(e), clientOf(e.Client), e.State, e.Reason)
	if e.Next != "" {
		term.Say(out, "  next: %s\n", e.Next)
	}
	fmt.Fprintln(out)
	printSteps(out, e)
	if len(e.Resources) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	if e.Client.ID == "" {
		return printNames(c, e.Resources)
	}
	var rows [][]string
	for _, r := range e.Resources {
		rows = append(rows, []string{shortType(r.Type), r.Name, term.OrDash(r.Version), term.OrDash(r.Held), stateOf(r), term.OrDash(r.Age), term.OrDash(r.Reason)})
	}
	return term.Table(c, []string{"type", "name", "newest", "sent", "state", "for", "reason"}, rows)
}

// printNames prints the resources of a client that is not connected.
func printNames(c *cobra.Command, list []admin.ExplainedResource) error {
	var rows [][]string
	for _, r := range list {
		rows = append(rows, []string{shortType(r.Type), r.Name, term.OrDash(r.Version)})
	}
	return term.Table(c, []string{"type", "name", "newest"}, rows)
}

// stateOf returns the state of a resource for a cell of a table.
func stateOf(r admin.ExplainedResource) string {
	if r.State == "" {
		return "-"
	}
	state := shownState(r.State)
	if r.Pending {
		state += ", newer pending"
	}
	return state
}

func clientOf(client admin.ExplainedClient) string {
	if client.ID != "" {
		return "client " + client.ID
	}
	text := client.Kind + " in namespace " + client.Namespace
	if len(client.Labels) > 0 {
		text += " with labels " + pairs(client.Labels)
	}
	return text
}

// printSteps prints the records of the service, and each step of the way.
func printSteps(out io.Writer, e admin.Explanation) {
	for _, r := range e.Records {
		term.Say(out, "  %-10s %s%s\n", "record", r.Record, contribution(r))
	}
	for _, s := range e.Steps {
		term.Say(out, "  %-10s %s\n", s.Stage, s.Text)
	}
	if e.Address != "" {
		term.Say(out, "  %-10s an application calls it at %s\n", "address", e.Address)
	}
	for _, f := range e.Conflicts {
		term.Say(out, "  %-10s over %s: %s\n", "conflict", over(f), f.Reason)
	}
}
