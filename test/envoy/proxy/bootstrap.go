package proxy

import (
	_ "embed"
	"encoding/json"
	"net/netip"
	"os"
	"text/template"
)

//go:embed bootstrap.yaml
var bootstrapText string

// Config is what proxies differ in.
type Config struct {
	Program       string // that of [Fetch]
	Dir           string // where its files are written; it must exist
	Workload      string // its name
	Namespace     string
	IP            string           // its address, as it says; 127.0.0.1 if empty
	Delta         bool             // else state of the world
	ControlPlanes []netip.AddrPort // one of them is connected to
	Istiod        bool             // the control plane is istiod: listeners and routes are taken from it, too, which are bound on loopback
	Listeners     bool             // listeners and routes are taken from Isthmus, which are bound on loopback
	Labels        map[string]string
	OnDemand      bool   // clusters are asked for when a request names one, on a stream of their own, and endpoints over ADS
	Unserved      string // for how long it also waits for what Isthmus does not have: a runtime layer and, if delta, secrets; empty if it asks for none
	Secrets       string // a folder with certificate.json and authorities.json, for mutual TLS; empty for plaintext
}

// writeBootstrap writes Envoy's configuration.
func (c Config) writeBootstrap(path string) error {
	bootstrap, err := template.New("bootstrap").Funcs(template.FuncMap{"json": inJSON}).Parse(bootstrapText)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return bootstrap.Execute(file, c)
}

// inJSON writes a value as YAML reads it, too.
func inJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}
