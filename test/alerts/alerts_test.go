package alerts_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/prometheus/promql/parser"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// rig is an Isthmus that reads a folder of manifests.
type rig struct {
	*app.App
	t      *testing.T
	folder string // with isthmus.yaml, and the folder registry unless it is missing
	admin  string
}

const service = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: shop}
spec:
  hosts: [%[1]s.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [%[2]s]
---
`

// manifests returns services with so many endpoints each.
func manifests(services, endpoints int) string {
	var b strings.Builder
	for i := range services {
		list := make([]string, endpoints)
		for e := range list {
			list[e] = fmt.Sprintf("{address: 10.0.%d.%d}", i, e+1)
		}
		fmt.Fprintf(&b, service, fmt.Sprintf("s%d", i), strings.Join(list, ", "))
	}
	return b.String()
}

func start(t *testing.T, registry string) *rig {
	t.Helper()
	r := &rig{t: t, folder: t.TempDir()}
	if registry != "" {
		r.write("registry/shop.yaml", registry)
	}
	r.write("isthmus.yaml", "sources: [{name: files, file: {path: registry}}]\nstore: {dataDir: data}\n"+
		"outputs: {xds: {listen: '127.0.0.1:0'}}\nadmin: {listen: '127.0.0.1:0'}\n")
	c, err := config.Load(filepath.Join(r.folder, "isthmus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r.run(c)
	r.admin = r.AdminAddr().String()
	return r
}

// run runs the Isthmus until the test ends. It follows its configuration file.
func (r *rig) run(c *config.Config) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	a, err := app.New(ctx, c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		cancel()
		r.t.Fatal(err)
	}
	a.Reload(app.Reloading{File: filepath.Join(r.folder, "isthmus.yaml")})
	r.App = a
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Error(err)
		}
	})
}

func (r *rig) write(file, text string) {
	r.t.Helper()
	path := filepath.Join(r.folder, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// client connects a client that asks for the first service's cluster; nack is why it NACKs.
func (r *rig) client(nack string) {
	r.t.Helper()
	conn, err := grpc.NewClient(r.Addr("xds").String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	c := xdsclient.NewDelta(r.t, conn, xdsclient.Config{
		Node: xdsclient.Node("client", "shop", "envoy"), NACK: func(xdsclient.Resource) string { return nack },
	})
	c.Subscribe(xdsclient.CDS, "*")
}

// healthy returns a scrape of an Isthmus without a fault, and its address.
func healthy(t *testing.T) (scrape, string) {
	t.Helper()
	r := start(t, manifests(2, 10))
	r.client("")
	return await(t, r.admin, `isthmus_clients{output="xds",state="accepted"}`, 1), r.admin
}

func TestNoAlertFiresInHealth(t *testing.T) {
	t.Parallel()
	s, _ := healthy(t)
	if names := firing(t, s, nil, time.Now()); len(names) > 0 {
		t.Errorf("these fire: %q", names)
	}
	busy := map[string]float64{
		`isthmus_push_responses_total{output="xds",type="` + xdsclient.CDS + `"}`:    100,
		`isthmus_source_record_changes_total{change="removed",source="files"}`:       100,
		`isthmus_streams_rejected_total{cause="unready",output="xds"}`:               1, // IsthmusNotReady is about this
		`isthmus_commit_to_accept_seconds_bucket{le="` + fast(s) + `",output="xds"}`: 100,
		`isthmus_commit_to_accept_seconds_bucket{le="+Inf",output="xds"}`:            100,
	}
	if names := firing(t, s, busy, time.Now()); len(names) > 0 {
		t.Errorf("these fire under load: %q", names)
	}
}

// fast returns the lowest bucket of the histogram that the alert about slow clients reads.
func fast(s scrape) string {
	lowest := 1e9
	for name := range s {
		var le float64
		if rest, is := strings.CutPrefix(name, `isthmus_commit_to_accept_seconds_bucket{le="`); is {
			if _, err := fmt.Sscanf(rest, "%g", &le); err == nil {
				lowest = min(lowest, le)
			}
		}
	}
	return fmt.Sprint(lowest)
}

// Faults that are made: the alerts are those of a scrape of an Isthmus that has them.
func TestAlertsFireInTheirFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		registry string
		fault    func(*rig)
		series   string // has this value in the fault
		value    float64
		want     []string
	}{
		"a required registry is missing at the start": {
			series: "isthmus_ready{}", want: []string{"IsthmusNotReady", "IsthmusSourceDown"},
		},
		"the folder goes": {
			registry: manifests(2, 10),
			fault: func(r *rig) {
				if err := os.RemoveAll(filepath.Join(r.folder, "registry")); err != nil {
					r.t.Fatal(err)
				}
			},
			series: `isthmus_source_up{kind="file",source="files"}`, want: []string{"IsthmusSourceDown"},
		},
		"most endpoints go": {
			registry: manifests(4, 10),
			fault:    func(r *rig) { r.write("registry/shop.yaml", manifests(1, 10)) },
			series:   `isthmus_source_held_endpoints{source="files"}`, value: 30, want: []string{"IsthmusDropHeld"},
		},
		"an object is rejected": {
			registry: manifests(2, 10),
			fault: func(r *rig) {
				r.write("registry/shop.yaml", strings.Replace(manifests(2, 10), "number: 80", "number: 0", 1))
			},
			series: `isthmus_source_refused{source="files"}`, value: 1, want: []string{"IsthmusObjectsRejected"},
		},
		"a client NACKs": {
			registry: manifests(2, 10),
			fault:    func(r *rig) { r.client("I do not like it") },
			series:   `isthmus_clients{output="xds",state="refused"}`, value: 1, want: []string{"IsthmusClientsNACK"},
		},
		"the configuration is not valid": {
			registry: manifests(2, 10),
			fault:    func(r *rig) { r.write("isthmus.yaml", "sources: 7\n") },
			series:   "isthmus_config_reload_success{}", want: []string{"IsthmusConfigurationRejected"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, c.registry)
			if c.fault != nil {
				await(t, r.admin, "isthmus_ready{}", 1)
				c.fault(r)
			}
			s := await(t, r.admin, c.series, c.value)
			if diff := cmp.Diff(c.want, firing(t, s, nil, time.Now())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Faults that take long, or an API server: a scrape of health is edited.
func TestAlertsFireOnEditedScrapes(t *testing.T) {
	t.Parallel()
	s, _ := healthy(t)
	now := time.Now()
	for name, c := range map[string]struct {
		set, grow map[string]float64
		want      string
	}{
		"the disk hangs":       {set: map[string]float64{"isthmus_store_save_lag_seconds{}": 31}, want: "IsthmusNotSaved"},
		"streams are rejected": {grow: map[string]float64{`isthmus_streams_rejected_total{cause="identity",output="xds"}`: 1}, want: "IsthmusStreamsRejected"},
		"a panic":              {grow: map[string]float64{`isthmus_panics_total{output="xds",where="resource"}`: 1}, want: "IsthmusPanic"},
		"clients are slow":     {grow: map[string]float64{`isthmus_commit_to_accept_seconds_bucket{le="+Inf",output="xds"}`: 1}, want: "IsthmusClientsSlow"},
		"bad certificate files": {
			set: map[string]float64{`isthmus_certificate_stale{output="xds"}`: 1}, want: "IsthmusCertificateStale",
		},
		"a certificate expires": {
			set:  map[string]float64{`isthmus_certificate_expiry_timestamp_seconds{output="xds"}`: float64(now.Add(23 * time.Hour).Unix())},
			want: "IsthmusCertificateExpires",
		},
		"a certificate is young": {
			set: map[string]float64{`isthmus_certificate_expiry_timestamp_seconds{output="xds"}`: float64(now.Add(72 * time.Hour).Unix())},
		},
		"the issuing certificate expires": {
			set:  map[string]float64{`isthmus_authority_expiry_timestamp_seconds{certificate="issuer"}`: float64(now.Add(6 * 24 * time.Hour).Unix())},
			want: "IsthmusAuthorityExpires",
		},
		"the root is young": {
			set: map[string]float64{`isthmus_authority_expiry_timestamp_seconds{certificate="root"}`: float64(now.Add(8 * 24 * time.Hour).Unix())},
		},
		"the API server is away": {set: map[string]float64{"isthmus_istio_up{}": 0, "isthmus_istio_leader{}": 1}, want: "IsthmusWriterDown"},
		"no replica leads":       {set: map[string]float64{"isthmus_istio_up{}": 1, "isthmus_istio_leader{}": 0}, want: "IsthmusNoWriter"},
		"writes fail":            {set: map[string]float64{"isthmus_istio_failing{}": 1, "isthmus_istio_leader{}": 1}, want: "IsthmusWritesFail"},
		"writes are held":        {set: map[string]float64{"isthmus_istio_held{}": 1, "isthmus_istio_leader{}": 1}, want: "IsthmusWritesHeld"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edited := maps.Clone(s)
			maps.Copy(edited, c.set)
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			if diff := cmp.Diff(want, firing(t, edited, c.grow, now)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]string{"IsthmusDown"}, firing(t, scrape{}, nil, now)); diff != "" {
		t.Errorf("without a scrape, -want +got:\n%s", diff)
	}
}

func TestPromtoolFindsNothingInAScrape(t *testing.T) {
	t.Parallel()
	_, admin := healthy(t)
	text, err := get(admin)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "isthmus_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

var metricName = regexp.MustCompile(`\bisthmus_[a-z_]+`)

// Every metric of an alert or a panel is in the reference, and every alert has a section of
// the operators' page.
func TestAlertsAndPanelsNameWhatExists(t *testing.T) {
	t.Parallel()
	reference, operations := read(t, "../../docs/reference/metrics.md"), read(t, "../../docs/operations/README.md")
	known := func(where, expr string) {
		t.Helper()
		expr = strings.NewReplacer("$__rate_interval", "5m", "$job", "isthmus").Replace(expr)
		if _, err := parser.ParseExpr(expr); err != nil {
			t.Errorf("%s: %v", where, err)
		}
		for _, name := range metricName.FindAllString(expr, -1) {
			if name = strings.TrimSuffix(name, "_bucket"); !strings.Contains(reference, "| `"+name+"` |") {
				t.Errorf("%s names %s, which the reference does not have", where, name)
			}
		}
	}
	var sections []string
	for line := range strings.Lines(operations) {
		if section, is := strings.CutPrefix(line, "### Isthmus"); is {
			sections = append(sections, "Isthmus"+strings.TrimSpace(section))
		}
	}
	var names []string
	for _, rule := range rules(t) {
		names = append(names, rule.Alert)
		known(rule.Alert, rule.Expr)
		if !strings.Contains(operations, "- When: `"+rule.Expr+"`") {
			t.Errorf("the section of %s has another expression", rule.Alert)
		}
		if url := rule.Annotations["runbook_url"]; !strings.HasSuffix(url, "/docs/operations/README.md#"+strings.ToLower(rule.Alert)) {
			t.Errorf("the runbook of %s is %q", rule.Alert, url)
		}
	}
	if diff := cmp.Diff(sections, names); diff != "" {
		t.Errorf("-sections +alerts:\n%s", diff)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "../../deploy/helm/isthmus/files/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	if len(dashboard.Panels) == 0 {
		t.Fatal("the dashboard shows nothing")
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			known("panel "+p.Title, target.Expr)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
