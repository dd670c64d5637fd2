package inspect

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/push/session"
)

func newClients() *cobra.Command {
	var flags Flags
	var resources, content bool
	var only clientFilter
	c := &cobra.Command{
		Use:   "clients [ID] [--resources]",
		Short: "Show the connected clients and what each has ACKed",
		Long: `Clients lists the clients that are connected, with a line for each type of resource
that they ask for; with an ID only those of that id. RESOURCES counts the resources that a
client was sent, PENDING the names yet to be looked at, NACKED the responses it NACKed.
Below the table is the last NACK of each client that ever sent one, and notices: what a
client lacks because of its own metadata, such as listeners at ports that it does not
list. Next, 'isthmus services HOST' shows the service that a reason names.

STATE has the words of istioctl proxy-status, and -o json those in brackets:
  SYNCED    it ACKed the newest response ["accepted"]
  NOT SENT  nothing had to be sent ["idle"]
  WAITING   it has not answered the newest response; istioctl shows STALE ["waiting"]
  NACKED    it NACKed the newest response; REASON is its own ["refused"]

With --resources it lists every resource that the client was sent or asks for by name,
with its version. FOR is the age of the state, or of an ACKed version; PENDING says that
there may be something newer. There can be tens of thousands, and while they are
read they may change. With --content it prints each resource as JSON, in its newest
version for the client: it is what the client has if contentVersion equals version.

Exit status: 0 they were printed, whatever their states; 1 no client with that ID is
connected, or no answer from the admin API; 2 wrong usage.`,
		Example: "  isthmus clients\n  isthmus clients --state nacked --watch\n  isthmus clients 'sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local'\n" +
			"  isthmus clients 'sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local' --resources --content",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if content && !resources {
				return errors.New("--content needs --resources")
			}
			if resources && only.any() {
				return errors.New("--resources lists those of one client; remove --served-by, --state and --namespace")
			}
			return flags.run(c, func() error {
				if resources {
					return showResources(c, &flags, args, content)
				}
				return showClients(c, &flags, args, only)
			})
		},
	}
	flags.Add(c)
	flags.watchFlag(c)
	c.Flags().BoolVar(&content, "content", false, "with --resources: print the content of each resource, as JSON")
	c.Flags().BoolVar(&resources, "resources", false, "list what the client with this ID was sent, resource by resource")
	only.addTo(c)
	c.ValidArgsFunction = flags.completed(flags.clientIDs)
	return c
}

// showClients prints the selected clients, or the clients with an ID.
func showClients(c *cobra.Command, flags *Flags, args []string, only clientFilter) error {
	var clients []admin.Client
	if err := flags.Get(c.Context(), "/api/v1/clients", &clients); err != nil {
		return err
	}
	if len(args) == 1 {
		clients = slices.DeleteFunc(clients, func(client admin.Client) bool { return client.ID != args[0] })
		if len(clients) == 0 {
			return term.Wrong(fmt.Errorf("no client %q is connected; 'isthmus clients' lists the connected ones", args[0]))
		}
	}
	all := len(clients)
	clients = only.of(clients)
	noMatch(c, all, len(clients), "client")
	return term.Print(c, flags.Format, clients, func() error { return printClients(c, clients) })
}

// showResources prints a client's resources, which it reads page by page.
func showResources(c *cobra.Command, flags *Flags, args []string, content bool) error {
	if len(args) == 0 {
		return errors.New("--resources needs the ID of one client; 'isthmus clients' lists them")
	}
	list := []admin.ClientResource{}
	for from := "-"; from != ""; {
		path := "/api/v1/clients/" + url.PathEscape(args[0]) + "/resources?limit=5000"
		if content {
			path += "&content"
		}
		if from != "-" {
			path += "&from=" + from
		}
		var page admin.ResourcePage
		if err := flags.Get(c.Context(), path, &page); err != nil {
			return err
		}
		list, from = append(list, page.Resources...), page.Next
	}
	if content && flags.Format == term.AsTable {
		return term.Print(c, term.AsJSON, list, nil)
	}
	return term.Print(c, flags.Format, list, func() error { return printResources(c, list) })
}

func printResources(c *cobra.Command, list []admin.ClientResource) error {
	var rows [][]string
	for _, r := range list {
		pending := "-"
		if r.Pending {
			pending = "yes"
		}
		rows = append(rows, []string{
			r.Output, r.Protocol, shortType(r.Type), r.Name, term.OrDash(r.Version), shownState(r.State), r.Age, pending, term.OrDash(r.Reason),
		})
	}
	return term.Table(c, []string{"output", "protocol", "type", "name", "version", "state", "for", "pending", "reason"}, rows)
}

func printClients(c *cobra.Command, clients []admin.Client) error {
	var rows [][]string
	for _, client := range clients {
		for _, name := range slices.Sorted(maps.Keys(client.Types)) {
			t := client.Types[name]
			subscribed := strconv.Itoa(t.Subscribed)
			if t.Subscribed < 0 {
				subscribed = "all"
			}
			rows = append(rows, []string{
				client.ID, client.Protocol, client.Kind, term.OrDash(client.Namespace), client.Age,
				shortType(name), shownState(t.State), t.Age, subscribed,
				strconv.Itoa(t.Held), strconv.Itoa(t.Pending), strconv.Itoa(t.NACKed), term.OrDash(t.Reason),
			})
		}
		if len(client.Types) == 0 {
			rows = append(rows, []string{client.ID, client.Protocol, client.Kind, term.OrDash(client.Namespace), client.Age, "-", shownState(idle), "", "", "", "", "", "it has asked for nothing"})
		}
	}
	heading := []string{"id", "protocol", "kind", "namespace", "connected", "type", "state", "for", "subscribed", "resources", "pending", "nacked", "reason"}
	if err := term.Table(c, heading, rows); err != nil {
		return err
	}
	for _, client := range clients {
		printNACKs(c, client)
		for _, n := range client.Notices {
			term.Say(c.OutOrStdout(), "\n%s: notice of %s\n", client.ID, n.Object)
			if n.Where != "" {
				term.Say(c.OutOrStdout(), "  at %s\n", n.Where)
			}
			term.Say(c.OutOrStdout(), "  %s\n", n.Text)
		}
	}
	return nil
}

// nackAdvice is the fix for a NACK. Waiting does not help.
const nackAdvice = "fix the object in its registry; it is resent when it changes ('isthmus services HOST' shows the object)"

// printNACKs shows the last NACK of each type, regardless of later ACKs.
func printNACKs(c *cobra.Command, client admin.Client) {
	for _, name := range slices.Sorted(maps.Keys(client.Types)) {
		t := client.Types[name]
		if t.LastNACK == nil {
			continue
		}
		advice := "it has ACKed newer ones since then"
		if t.State == string(session.NACKed) {
			advice = nackAdvice
		}
		term.Say(c.OutOrStdout(), "\n%s: %s: %d NACKed, the last %s ago: %s\n  %s\n",
			client.ID, shortType(name), t.NACKed, t.LastNACK.Age, term.OrDash(t.LastNACK.Reason), advice)
	}
}

// shortType returns the name of a type without its package or group. A collection of MCP
// has none, and two of them end in the same word.
func shortType(name string) string {
	if !strings.Contains(name, ".") {
		return name
	}
	return name[strings.LastIndexAny(name, "./")+1:]
}
