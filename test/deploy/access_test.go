package deploy_test

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/test/testkit/instance"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// own are the addresses by which this machine reaches itself over its listeners
// beyond loopback, as other pods would.
func own(t *testing.T) (list []string) {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range addrs {
		if n, ok := addr.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			list = append(list, n.IP.String())
		}
	}
	return list
}

// run has Isthmus serve what the chart configures, but for the folders and the
// ports, which are those of this machine.
func run(t *testing.T, c *config.Config) (port string) {
	t.Helper()
	c.Sources[0].Settings.(*file.Config).Path, c.Store.DataDir = t.TempDir(), ""
	c.Outputs.Of("xds").(*xds.Config).Listen = "127.0.0.1:0"
	host, _, err := net.SplitHostPort(c.Admin.Listen)
	if err != nil {
		t.Fatal(err)
	}
	c.Admin.Listen = net.JoinHostPort(host, "0")
	return strconv.Itoa(instance.Run(t, c).AdminAddr().(*net.TCPAddr).Port)
}

func ask(t *testing.T, url, host string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Host, request.Close = host, true
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: until.Patience}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// kubectl exec and kubectl port-forward connect within the pod; the kubelet,
// Prometheus and other pods connect to its address.
func TestAPIOfTheChartIsReachedFromWithinThePodAlone(t *testing.T) {
	t.Parallel()
	c := configuration(t, render(t, proxies))
	if c.Admin.Insecure || len(c.Warnings()) != 1 || !strings.Contains(c.Warnings()[0], "outputs.xds") {
		t.Errorf("the chart makes it %+v, with the warnings %q", c.Admin, c.Warnings())
	}
	port := run(t, c)
	for _, host := range []string{"", "localhost:8080"} {
		if status, body := ask(t, "http://127.0.0.1:"+port+"/api/v1/sources", host); status != http.StatusOK || !strings.Contains(body, "legacy") {
			t.Errorf("within the pod, of host %q: %d %s", host, status, body)
		}
	}
	if status, body := ask(t, "http://127.0.0.1:"+port+"/api/v1/sources", "evil.example"); status != http.StatusForbidden {
		t.Errorf("a page that is forwarded: %d %s", status, body)
	}
	for _, address := range append(own(t), "127.0.0.1") {
		for _, path := range []string{"/livez", "/metrics"} {
			if status, body := ask(t, "http://"+net.JoinHostPort(address, port)+path, "bridge-admin.mesh.svc:8080"); status != http.StatusOK {
				t.Errorf("%s at %s: %d %s", path, address, status, body)
			}
		}
	}
	for _, address := range own(t) {
		for _, host := range []string{"", "localhost"} {
			status, body := ask(t, "http://"+net.JoinHostPort(address, port)+"/api/v1/sources", host)
			if status != http.StatusForbidden || !strings.Contains(body, "kubectl exec") {
				t.Errorf("another pod at %s, of host %q: %d %s", address, host, status, body)
			}
		}
	}
}

func TestPodsKnowHowTheirOwnAPIIsAsked(t *testing.T) {
	t.Parallel()
	for admin, want := range map[string]string{
		"{}": "http://127.0.0.1:8080 HTTP http",
		"{listen: ':9090', tokenFile: /secrets/token}":             "http://127.0.0.1:9090 /secrets/token HTTP http",
		"{tls: {certFile: /tls/tls.crt, keyFile: /tls/tls.key}}":   "https://127.0.0.1:8080 HTTPS https",
		"{listen: '0.0.0.0:9443', tls: {certFile: a, keyFile: b}}": "https://127.0.0.1:9443 HTTPS https",
		"{insecure: true, allowedHosts: [bridge-admin.mesh.svc]}":  "http://127.0.0.1:8080 HTTP http",
	} {
		o := render(t, proxies+"  admin: "+admin+"\nenv: [{name: MORE, value: x}]\nserviceMonitor: {enabled: true, tlsConfig: {serverName: x}}\n")
		c := get[appsv1.Deployment](t, o, "Deployment bridge").Spec.Template.Spec.Containers[0]
		var got []string
		for _, e := range c.Env[:len(c.Env)-1] {
			if e.ValueFrom == nil {
				got = append(got, e.Value)
			}
		}
		if last := c.Env[len(c.Env)-1]; last.Name != "MORE" {
			t.Errorf("the user's variables are not the last: %+v", c.Env)
		}
		if c.LivenessProbe.HTTPGet.Scheme != c.ReadinessProbe.HTTPGet.Scheme {
			t.Errorf("the probes differ: %+v %+v", c.LivenessProbe, c.ReadinessProbe)
		}
		monitor := (*get[map[string]any](t, o, "ServiceMonitor bridge"))["spec"].(map[string]any)["endpoints"].([]any)[0].(map[string]any)
		got = append(got, string(c.ReadinessProbe.HTTPGet.Scheme), monitor["scheme"].(string))
		if s := strings.Join(got, " "); s != want {
			t.Errorf("with admin: %s they are asked by %s, want %s", admin, s, want)
		}
	}
}
