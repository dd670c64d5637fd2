package feature_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/test/testkit/calls"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// get asks the admin API.
func (i *isthmus) get(path string) (code int, body string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(i.t.Context()), until.Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.Admin+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	request.Close = true // else the connection outlives the test
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// read asks the admin API for JSON.
func (i *isthmus) read(path string, into any) error {
	code, body, err := i.get(path)
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("GET %s: %d: %s", path, code, body)
	}
	return json.Unmarshal([]byte(body), into)
}

// mustRead is read for what cannot fail.
func (i *isthmus) mustRead(path string, into any) {
	i.t.Helper()
	if err := i.read(path, into); err != nil {
		i.t.Fatal(err)
	}
}

// Source shows a source.
func (i *isthmus) Source(name string) admin.Source {
	i.t.Helper()
	var list []admin.Source
	i.mustRead("/api/v1/sources", &list)
	at := slices.IndexFunc(list, func(s admin.Source) bool { return s.Name == name })
	if at < 0 {
		i.t.Fatalf("the admin API shows no source %s", name)
	}
	return list[at]
}

// AwaitSource waits until a source is in a state, for a reason that says so.
func (i *isthmus) AwaitSource(name, state, reason string) {
	i.t.Helper()
	await(i.t, fmt.Sprintf("source %s to be %s", name, state), func() error {
		if s := i.Source(name); s.State != state || !strings.Contains(s.Reason, reason) {
			return fmt.Errorf("it is %s: %s", s.State, s.Reason)
		}
		return nil
	})
}

// AwaitRejected waits until what is rejected of a source is exactly what is
// given, each as "object at where: field: reason", of which the end may be missing.
func (i *isthmus) AwaitRejected(name string, want ...string) {
	i.t.Helper()
	await(i.t, "what source "+name+" rejects", func() error {
		var got []string
		for _, r := range i.Source(name).Rejected {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s at %s: %s: %s", r.Object, r.Where, r.Field, r.Reason)))
		}
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			return fmt.Errorf("it rejects\n  %s", strings.Join(got, "\n  "))
		}
		return nil
	})
}

// Services shows the services with a host; there is one for each namespace.
func (i *isthmus) Services(host string) ([]admin.Service, error) {
	var list []admin.Service
	err := i.read("/api/v1/services/"+url.PathEscape(host), &list)
	return list, err
}

// AwaitService waits until the one service with a host is as a check demands,
// and returns it.
func (i *isthmus) AwaitService(host string, check func(admin.Service) error) admin.Service {
	i.t.Helper()
	var found admin.Service
	await(i.t, "service "+host, func() error {
		list, err := i.Services(host)
		if err != nil {
			return err
		}
		if len(list) != 1 {
			return fmt.Errorf("there are %d", len(list))
		}
		found = list[0]
		return check(found)
	})
	return found
}

// Clients shows the clients.
func (i *isthmus) Clients() []admin.Client {
	i.t.Helper()
	var list []admin.Client
	i.mustRead("/api/v1/clients", &list)
	return list
}

// acked demands that a client has accepted what it was sent of a type, and
// holds so many resources of it.
func (i *isthmus) acked(c *calls.Client, typeURL string, held int) error {
	i.t.Helper()
	for _, known := range i.Clients() {
		if of := known.Types[typeURL]; known.ID == c.Name && of.State == "accepted" && of.Held == held {
			return nil
		}
	}
	return fmt.Errorf("%s has not accepted %d of %s", c.Name, held, typeURL)
}

// sent tells everything a client has been sent so far: versions by type, and
// of load assignments how many there have been to anybody.
func (i *isthmus) sent(c *calls.Client) string {
	i.t.Helper()
	var b strings.Builder
	for _, known := range i.Clients() {
		if known.ID != c.Name {
			continue
		}
		for _, typeURL := range slices.Sorted(maps.Keys(known.Types)) {
			fmt.Fprintf(&b, "%s %s\n", typeURL, known.Types[typeURL].Sent)
		}
	}
	_, metrics, err := i.get("/metrics")
	if err != nil {
		i.t.Fatal(err)
	}
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "isthmus_push_responses_total") && strings.Contains(line, xdsclient.EDS) {
			b.WriteString(line)
		}
	}
	return b.String()
}
