package azure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sdk "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"

	"github.com/isthmus-mesh/isthmus/internal/kubeconfig"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/machines"
)

var _ source.Settings = (*Config)(nil)

// Config declares services and their machines.
type Config struct {
	// Cloud is public, china or government.
	Cloud       string      `json:"cloud"`
	Credentials Credentials `json:"credentials"`
	// Subscription and Subscriptions are searched for machines that are selected by
	// tags.
	Subscription  string   `json:"subscription"`
	Subscriptions []string `json:"subscriptions"`
	// Services may be written as a map of hosts, each with its resources.
	Services []machines.Service `json:"services"`
	// Port is the port of services that name none; zero if all of them do.
	Port int `json:"port"`
	// Kubernetes is a cluster with AzureResource objects, which define further
	// services.
	Kubernetes *Kubernetes `json:"kubernetes"`
	// Allow lists the machines that these objects may name; required with Kubernetes.
	Allow []Allow `json:"allow"`
	// Poll is the pause between two rounds, give or take a tenth.
	Poll time.Duration `json:"poll"`
	// Timeout bounds a request.
	Timeout time.Duration `json:"timeout"`
}

// Kubernetes is a cluster.
type Kubernetes struct {
	// Kubeconfig is a kubeconfig file. Empty means the cluster that Isthmus runs in,
	// or else kubectl's default.
	Kubeconfig string `json:"kubeconfig"`
	// Context is a context of the kubeconfig; empty means its current one.
	Context string `json:"context"`
}

// Bounds of time.
const (
	leastPoll  = 30 * time.Second // Azure counts requests by subscription, over all readers
	roundLimit = 5 * time.Minute
)

// Kind returns the row of this registry in the table of kinds.
func Kind() source.Kind {
	return source.Kind{
		Name: "azure", MaxBackoff: time.Minute,
		New: func() source.Settings {
			return &Config{Cloud: "public", Poll: leastPoll, Timeout: 20 * time.Second}
		},
	}
}

// Validate implements [source.Settings].
func (c *Config) Validate() error {
	var errs []error
	need := func(holds bool, format string, args ...any) {
		if !holds {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	_, known := clouds(c.Cloud)
	need(known, "cloud: %q is none; write public, china or government", c.Cloud)
	need(len(c.Services) > 0 || c.Kubernetes != nil, "services: missing; name services and their machines, or in kubernetes a cluster with AzureResource objects")
	need(c.Poll >= leastPoll, "poll: must be at least %s: Azure limits how often a subscription is read", leastPoll)
	need(c.Timeout > 0, "timeout: must be more than 0, such as 20s")
	need(isSubscription(c.Subscription) || c.Subscription == "", "subscription: %q is no id of a subscription; write it without /subscriptions/", c.Subscription)
	need(c.Port >= 0 && c.Port <= 65535, "port: %d is not a port from 1 to 65535; correct it, or leave it out", c.Port)
	for i, s := range c.Subscriptions {
		need(isSubscription(s), "subscriptions[%d]: %q is no id of a subscription; write it without /subscriptions/", i, s)
	}
	return errors.Join(append(errs, c.Credentials.validate(), c.validateServices(), c.validateAllow())...)
}

func isSubscription(id string) bool { return id != "" && !strings.ContainsAny(id, "/ ") }

// subscriptions returns all subscriptions in which machines are selected by tags.
func (c *Config) subscriptions() []string {
	if c.Subscription == "" || slices.Contains(c.Subscriptions, c.Subscription) {
		return c.Subscriptions
	}
	return append([]string{c.Subscription}, c.Subscriptions...)
}

// services returns all services, with their ports.
func (c *Config) services() []machines.Service {
	all := slices.Clone(c.Services)
	for i := range all {
		if len(all[i].Ports) == 0 && c.Port != 0 {
			all[i].Ports = []machines.Port{{Number: c.Port}}
		}
	}
	return all
}

func (c *Config) validateServices() error {
	var errs []error
	names := map[string]int{}
	at := cloud{subscriptions: c.subscriptions()}
	for i, s := range c.services() {
		prefix := fmt.Sprintf("services[%d].", i)
		errs = append(errs, s.Validate(prefix))
		if first, taken := names[s.Namespace+"/"+s.Host]; taken {
			errs = append(errs, fmt.Errorf("%shost: services[%d] has this host and namespace; name all resources there", prefix, first))
		} else {
			names[s.Namespace+"/"+s.Host] = i
		}
		_, err := at.Groups(s)
		for _, one := range unjoined(err) {
			errs = append(errs, fmt.Errorf("%s%w", prefix, one))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validateAllow() error {
	switch {
	case c.Kubernetes == nil && len(c.Allow) > 0:
		return errors.New("allow: has no effect without kubernetes, whose AzureResource objects it confines; add kubernetes, or remove it")
	case c.Kubernetes != nil && len(c.Allow) == 0:
		return errors.New("allow: missing; AzureResource objects may name no machines without it: " +
			"write which namespaces may name which, such as [{namespaces: [shop], subscriptions: [ID], groups: [shop]}], or [{namespaces: [\"*\"], subscriptions: [\"*\"]}] for all")
	}
	var errs []error
	for i, a := range c.Allow {
		errs = append(errs, unjoined(a.validate(fmt.Sprintf("allow[%d].", i)))...)
	}
	return errors.Join(errs...)
}

// unjoined returns the errors that [errors.Join] has joined.
func unjoined(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // it was just joined
		return many.Unwrap()
	}
	return nil
}

func (c *Credentials) validate() error {
	given := 0
	for _, is := range []bool{c.WorkloadIdentity != nil, c.ManagedIdentity != nil, c.ClientSecret != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return fmt.Errorf("credentials: has %d kinds; write exactly one of workloadIdentity, managedIdentity and clientSecret, such as managedIdentity: {}", given)
	}
	if c.ClientSecret == nil {
		return nil
	}
	var errs []error
	for _, need := range []struct{ field, value, next string }{
		{"tenantId", c.ClientSecret.TenantID, "write the id of the directory that the application is in"},
		{"clientId", c.ClientSecret.ClientID, "write the id of the application"},
		{"secretFile", c.ClientSecret.SecretFile, "name the file that has the secret"},
	} {
		if need.value == "" {
			errs = append(errs, fmt.Errorf("credentials.clientSecret.%s: missing; %s", need.field, need.next))
		}
	}
	return errors.Join(errs...)
}

// clouds finds one of Azure's clouds.
func clouds(name string) (sdk.Configuration, bool) {
	switch name {
	case "public":
		return sdk.AzurePublic, true
	case "china":
		return sdk.AzureChina, true
	case "government":
		return sdk.AzureGovernment, true
	}
	return sdk.Configuration{}, false
}

// Resolve implements [source.Settings].
func (c *Config) Resolve(dir string) {
	for _, file := range c.files() {
		if *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(dir, *file)
		}
	}
}

// files returns the files that the configuration names, which all have secrets.
func (c *Config) files() (list []*string) {
	if w := c.Credentials.WorkloadIdentity; w != nil {
		list = append(list, &w.TokenFile)
	}
	if s := c.Credentials.ClientSecret; s != nil {
		list = append(list, &s.SecretFile)
	}
	if c.Kubernetes != nil {
		list = append(list, &c.Kubernetes.Kubeconfig)
	}
	return slices.Clip(list)
}

// Check implements [source.Settings].
func (c *Config) Check() error {
	var errs []error
	if w := c.Credentials.WorkloadIdentity; w != nil && w.TokenFile != "" {
		if _, err := os.Stat(w.TokenFile); err != nil {
			errs = append(errs, fmt.Errorf("credentials.workloadIdentity.tokenFile: %w", err))
		}
	}
	if s := c.Credentials.ClientSecret; s != nil {
		_, err := readSecret(s.SecretFile)
		errs = append(errs, err)
	}
	if k := c.Kubernetes; k != nil && k.Kubeconfig+k.Context != "" {
		if _, err := kubeconfig.Load(k.Kubeconfig, k.Context, "isthmus"); err != nil {
			errs = append(errs, fmt.Errorf("kubernetes.%w", err))
		}
	}
	return errors.Join(errs...)
}

// Secrets returns the files with secrets.
func (c *Config) Secrets() (list []string) {
	for _, file := range c.files() {
		list = append(list, *file)
	}
	return list
}

// Warnings implements [source.Settings].
func (c *Config) Warnings() []string { return nil }

// Open implements [source.Settings].
func (c *Config) Open(env source.Env) source.Source { return New(*c, env, Access{}) }
