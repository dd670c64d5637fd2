package azure

import (
	"context"
	"crypto/tls"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/machines"
)

// Source mirrors services on machines of Azure.
type Source struct {
	config Config
	access Access
	log    *slog.Logger
	stored func() iter.Seq[model.Record] // nil if stored records cannot be read

	mirror *machines.Source // nil before the first run that had credentials
}

var _ source.Source = (*Source)(nil)

// Access replaces parts of the configured access to Azure; nil fields are built from
// the configuration.
type Access struct {
	Credential azcore.TokenCredential
	Transport  policy.Transporter
	// Objects reads the objects that define services beside the configuration.
	Objects func(ctx context.Context) machines.Objects
}

// New returns a source for a configuration that is valid.
func New(c Config, env source.Env, a Access) *Source {
	log := env.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Source{config: c, access: a, log: log, stored: env.Stored}
}

// Run implements [source.Source].
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	if s.mirror == nil {
		mirror, err := s.open()
		if err != nil {
			return err
		}
		s.mirror = mirror
	}
	if c, ok := s.access.Transport.(interface{ CloseIdleConnections() }); ok {
		defer c.CloseIdleConnections()
	}
	return s.mirror.Run(ctx, sink)
}

// open builds the mirror, with the parts of Access that were not given.
func (s *Source) open() (*machines.Source, error) {
	a := &s.access
	if a.Transport == nil {
		a.Transport = newClient()
	}
	at, _ := clouds(s.config.Cloud)
	options := policy.ClientOptions{
		Cloud: at, Transport: bounded{a.Transport}, Telemetry: policy.TelemetryOptions{ApplicationID: "isthmus"},
	}
	if a.Credential == nil {
		credential, err := s.config.Credentials.open(options, s.log)
		if err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		a.Credential = credential
	}
	if a.Objects == nil && s.config.Kubernetes != nil {
		a.Objects = objects{*s.config.Kubernetes, s.config.Timeout}.read
	}
	if a.Objects != nil {
		a.Objects = rights{s.config.Allow, s.config.subscriptions()}.confine(a.Objects)
	}
	options.Retry = policy.RetryOptions{
		MaxRetries: 2, TryTimeout: s.config.Timeout,
		// A longer pause that Azure asks for comes back as an error, and applies to
		// the whole subscription.
		MaxRetryDelay: 10 * time.Second,
	}
	return machines.New(&cloud{
		credential: a.Credential, subscriptions: s.config.subscriptions(), clients: map[string]*clients{},
		// The other policy would register resource providers, and so write.
		options: &arm.ClientOptions{ClientOptions: options, DisableRPRegistration: true},
	}, machines.Options{Services: s.config.services(), Objects: a.Objects, Poll: s.config.Poll, Least: leastPoll, Round: roundLimit, Stored: s.stored}), nil
}

// newClient returns a client that shares no connections with other parts.
func newClient() *http.Client {
	transport := &http.Transport{
		Proxy: proxy, ForceAttemptHTTP2: true, MaxIdleConns: 16,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	return &http.Client{Transport: transport}
}

// proxy returns the environment's proxy, except for link-local addresses: a managed
// identity gets its tokens there, for this machine alone.
func proxy(r *http.Request) (*url.URL, error) {
	if at, err := netip.ParseAddr(r.URL.Hostname()); err == nil && at.IsLinkLocalUnicast() {
		return nil, nil //nolint:nilnil // as the transport has it: there is none
	}
	return http.ProxyFromEnvironment(r)
}
