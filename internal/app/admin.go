package app

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output/envoy"
)

// newAdmin makes the admin API, which looks at all of them.
func (a *App) newAdmin(c config.Admin, metrics *prometheus.Registry) (*admin.Server, error) {
	access, err := a.adminAccess(c, metrics)
	if err != nil {
		return nil, err
	}
	parts := admin.Parts{
		Sources:  a.fleet.supervisors,
		Snapshot: a.gate.Snapshot,
		Writers:  a.istio.shown,
		Config:   a.reloader.shown,
		Missing:  a.missing,
		Stuck:    a.newWatchdog().stuck,
		Access:   access,
		Metrics:  metrics,
		Log:      a.log,
	}
	if a.xds != nil {
		parts.Outputs = []admin.Output{{
			Name: "xds", Engine: a.engine, NotOffered: envoy.NotOffered, Unserved: envoy.Unserved,
			Kinds: []string{envoy.KindEnvoy, envoy.KindGRPC},
		}}
	}
	if a.disk != nil {
		parts.Store = a.saving
	}
	return admin.New(parts), nil
}

// adminAccess says who may ask the admin API.
func (a *App) adminAccess(c config.Admin, metrics *prometheus.Registry) (admin.Access, error) {
	for _, warning := range c.Warnings() {
		a.log.Warn("the admin listener is exposed", "warning", warning)
	}
	access := admin.Access{AllowedHosts: c.AllowedHosts, Insecure: c.Insecure}
	if c.TokenFile != "" {
		access.Token = c.Token
	}
	keeper, err := c.Certificates(a.log)
	if err != nil {
		return access, fmt.Errorf("admin.%w", err)
	}
	if keeper != nil {
		access.TLS = keeper.HTTP()
		measureCertificates(metrics, "admin", keeper)
	}
	return access, nil
}
