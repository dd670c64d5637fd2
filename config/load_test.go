package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output/istio"
	registry "github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/golden"
)

// environment is what the variables in testdata stand for.
var environment = map[string]string{"PORT": "15010", "EMPTY": "", "INJECTION": "x\nadmin: {listen: evil}"}

func lookup(name string) (string, bool) {
	value, ok := environment[name]
	return value, ok
}

// Each file of testdata is a configuration and the problems that are found in it.
func TestProblems(t *testing.T) {
	t.Parallel()
	golden.Run(t, func(_ *testing.T, written *txtar.Archive) *txtar.Archive {
		_, problems := config.Parse(written.Files[0].Data, lookup)
		var found strings.Builder
		for _, p := range problems {
			fmt.Fprintf(&found, "%d: %s: %s\n", p.Line, p.Field, p.Reason)
		}
		return golden.With(written, "problems", found.String())
	})
}

func TestDefaultsAndVariables(t *testing.T) {
	t.Parallel()
	c, problems := config.Parse([]byte(`
sources:
- name: files
  file: {path: "${EMPTY:-/srv}/$${literal}"}
outputs:
  xds: {listen: "127.0.0.1:${PORT}"}
`), lookup)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	source := c.Sources[0]
	got := []string{c.Instance, c.Admin.Listen, c.Log.Level, c.Log.Format, source.Settings.(*file.Config).Path, c.Outputs.Of("xds").String(), source.Kind}
	want := []string{"isthmus", "127.0.0.1:8080", "info", "text", "/srv/${literal}", "on 127.0.0.1:15010", "file"}
	if source.Hold != (hold.Config{Share: 0.5, Min: 10, For: time.Minute}) {
		t.Errorf("hold %+v", source.Hold)
	}
	if diff := cmp.Diff(want, got); diff != "" || !source.IsRequired() {
		t.Errorf("required %v, %s", source.IsRequired(), diff)
	}
}

// What is not said about holding keeps its default, which is longer for a
// registry kept alive by heartbeats; what is said may be zero.
func TestHoldIsFilledKeyByKey(t *testing.T) {
	t.Parallel()
	c, problems := config.Parse([]byte(`
sources:
- {name: a, file: {path: /a}, hold: {share: 0, min: 0}}
- {name: b, file: {path: /b}, hold: {for: 1500ms}}
- {name: c, servicecenter: {addresses: [http://127.0.0.1:30100]}}
- {name: d, hold: {min: 1}, servicecenter: {addresses: [http://127.0.0.1:30100]}}
- {name: e, hold: {for: 60s}, servicecenter: {addresses: [http://127.0.0.1:30100]}}
outputs: {xds: {listen: "127.0.0.1:1"}}
`), lookup)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := []hold.Config{
		{For: time.Minute},
		{Share: 0.5, Min: 10, For: 1500 * time.Millisecond},
		{Share: 0.5, Min: 10, For: 3 * time.Minute},
		{Share: 0.5, Min: 1, For: 3 * time.Minute},
		{Share: 0.5, Min: 10, For: time.Minute},
	}
	var got []hold.Config
	for _, s := range c.Sources {
		got = append(got, s.Hold)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a variable holds is a value and never a part of the file's structure.
func TestVariablesCannotInject(t *testing.T) {
	t.Parallel()
	c, problems := config.Parse([]byte("sources: [{name: a, file: {path: \"${INJECTION}\"}}]\noutputs: {xds: {listen: '127.0.0.1:1'}}\n"), lookup)
	if len(problems) > 0 || c.Sources[0].Settings.(*file.Config).Path != environment["INJECTION"] || c.Admin.Listen != "127.0.0.1:8080" {
		t.Errorf("path %q, admin %q, problems %v", c.Sources[0].Settings.(*file.Config).Path, c.Admin.Listen, problems)
	}
}

func TestPathsAreRelativeToTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "isthmus.yaml")
	text := "sources: [{name: a, file: {path: ./registry}}]\noutputs: {xds: {listen: '127.0.0.1:1'}}\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "registry"); c.Sources[0].Settings.(*file.Config).Path != want {
		t.Errorf("path %q, want %q", c.Sources[0].Settings.(*file.Config).Path, want)
	}
}

func TestMissingFileSaysWhatToDo(t *testing.T) {
	t.Parallel()
	_, err := config.Load(filepath.Join(t.TempDir(), "none.yaml"))
	if err == nil || !strings.Contains(err.Error(), "--config") || strings.Count(err.Error(), "none.yaml") != 1 {
		t.Errorf("error %v", err)
	}
}

// Whatever the bytes, parsing ends, and what it accepts it accepts again.
func FuzzParse(f *testing.F) {
	f.Add([]byte("sources: [{name: a, file: {path: x}}]\noutputs: {xds: {listen: '127.0.0.1:1'}}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("sources:\n- ${PORT}\n"))
	f.Add([]byte("log: {level: ${X:-${Y}}}\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		first, problems := config.Parse(text, lookup)
		second, again := config.Parse(text, lookup)
		if diff := cmp.Diff(problems, again); diff != "" {
			t.Errorf("the same text has other problems: %s", diff)
		}
		if diff := cmp.Diff(first.Instance, second.Instance); diff != "" {
			t.Error(diff)
		}
	})
}

// Validation needs no network, but certificates have to be there.
func TestCertificatesAreLookedAt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "isthmus.yaml")
	text := "sources: [{name: a, file: {path: ./registry}}]\noutputs:\n  xds:\n    listen: 0.0.0.0:1\n    tls:\n      certFile: tls.crt\n      keyFile: tls.key\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load(name)
	if want := ":6: outputs.xds.tls.certFile: "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q in it", err, want)
	}
	pair := authority.New(t, "ca").Issue("server")
	for name, text := range map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if warnings := c.Outputs.Of("xds").Warnings(); len(warnings) != 1 || !strings.Contains(warnings[0], "clientCAFile") {
		t.Errorf("warnings %q", warnings)
	}
}

// An output that is only named has its defaults, and needs no other output.
func TestOutputHasItsDefaults(t *testing.T) {
	t.Parallel()
	c, problems := config.Parse([]byte("sources:\n- name: files\n  file: {path: x}\noutputs:\n  istio: {qps: 7}\n"), lookup)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := istio.DefaultConfig()
	want.QPS = 7
	if diff := cmp.Diff(want, *c.Outputs.Of("istio").(*istio.Config), cmpopts.IgnoreUnexported(istio.Config{})); diff != "" || c.Outputs.Of("xds") != nil {
		t.Errorf("xds %v, istio (-want +got):\n%s", c.Outputs.Of("xds"), diff)
	}
}

// What is set to zero is not what is left out.
func TestZeroIsNotAbsent(t *testing.T) {
	t.Parallel()
	settings := func(more string) *servicecenter.Config {
		t.Helper()
		c, problems := config.Parse([]byte("sources:\n- {name: a, servicecenter: {addresses: [http://127.0.0.1:30100]"+more+"}}\noutputs: {xds: {listen: '127.0.0.1:1'}}\n"), lookup)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return c.Sources[0].Settings.(*servicecenter.Config)
	}
	if c := settings(""); c.PortGrace != time.Hour || c.Timeout != 10*time.Second || c.Domain != "default" {
		t.Errorf("what is left out is %+v", c)
	}
	if c := settings(", portGrace: 0s"); c.PortGrace != 0 {
		t.Errorf("portGrace: 0s is %s", c.PortGrace)
	}
	_, problems := config.Parse([]byte("sources:\n- {name: a, servicecenter: {addresses: [http://127.0.0.1:30100], timeout: 0s}}\noutputs: {xds: {listen: '127.0.0.1:1'}}\n"), lookup)
	if len(problems) != 1 || problems[0].Field != "sources[0].servicecenter.timeout" {
		t.Errorf("timeout: 0s is found %v", problems)
	}
}

// What is not there is found with everything else when somebody asks, and keeps
// no program from starting if it may come later.
func TestMissingFilesAndFolders(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "isthmus.yaml")
	text := "sources:\n- name: a\n  file:\n    path: ./registry\n- name: b\n  servicecenter:\n    addresses: [https://sc.example:30100]\n" +
		"    username: root\n    passwordFile: password\noutputs: {xds: {listen: '127.0.0.1:1'}}\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(name); err != nil {
		t.Errorf("it does not start: %v", err)
	}
	_, err := config.Check(name)
	for _, want := range []string{":4: sources[0].file.path: ", ":9: sources[1].servicecenter.passwordFile: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q: %v", want, err)
		}
	}
}

// Endpoints at local addresses are taken from files that no only confines, and from others
// if the configuration says so.
func TestWhoMayListLocalAddresses(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]registry.LocalAddresses{
		"{name: a, file: {path: a}}":                                                    registry.AllowLocal,
		"{name: a, file: {path: a}, only: {namespaces: [shop]}}":                        registry.RejectLocal,
		"{name: a, file: {path: a}, only: {namespaces: [shop]}, localAddresses: allow}": registry.AllowLocal,
		"{name: a, localAddresses: reject, file: {path: a}}":                            registry.RejectLocal,
		"{name: a, xds: {address: '127.0.0.1:15010'}}":                                  registry.RejectLocal,
		"{name: a, localAddresses: allow, xds: {address: '127.0.0.1:15010'}}":           registry.AllowLocal,
		"{name: a, servicecenter: {addresses: ['http://127.0.0.1:30100']}}":             registry.RejectLocal,
	} {
		c, problems := config.Parse([]byte("sources: ["+entry+"]\noutputs: {xds: {listen: 127.0.0.1:0}}\n"), lookup)
		if len(problems) > 0 {
			t.Fatal(entry, problems)
		}
		if got := c.Sources[0].LocalAddresses; got != want {
			t.Errorf("%s: %s, want %s", entry, got, want)
		}
	}
	_, problems := config.Parse([]byte("sources: [{name: a, localAddresses: true, file: {path: a}}]\noutputs: {xds: {listen: 127.0.0.1:0}}\n"), lookup)
	if text := fmt.Sprint(problems); !strings.Contains(text, `sources[0].localAddresses`) || !strings.Contains(text, `"true" is neither allow nor reject`) {
		t.Error(text)
	}
	_, problems = config.Parse([]byte("sources: [{name: a, network: vpc/2, file: {path: a}}]\noutputs: {xds: {listen: 127.0.0.1:0}}\n"), lookup)
	if text := fmt.Sprint(problems); !strings.Contains(text, `sources[0].network "vpc/2" cannot be the value of a label`) {
		t.Error(text)
	}
}
