package app

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
)

// openAdmin makes the admin API, which reads all parts, and binds its listener.
func (a *App) openAdmin(ctx context.Context, c config.Admin, version string, metrics *prometheus.Registry) error {
	access, err := a.adminAccess(c)
	if err != nil {
		return err
	}
	parts := admin.Parts{
		Version:   version,
		Started:   time.Now(),
		Sources:   a.fleet.supervisors,
		Snapshot:  a.branches[0].gate.Snapshot,
		Outputs:   a.reports,
		Config:    a.reloader.shown,
		Missing:   a.missing,
		Stuck:     newWatchdog(a.parts).stuck,
		Faults:    a.faults.all,
		Events:    a.events,
		Authority: a.trust.authority,
		Identity:  a.trust.problems,
		Access:    access,
		Metrics:   metrics,
		Log:       a.log,
	}
	if a.disk != nil {
		parts.Store = a.saving
	}
	a.admin = admin.New(parts)
	if a.adminListener, err = a.listen(ctx, "tcp", c.Listen); err != nil {
		field := "admin.listen"
		if c.Listen == config.DefaultAdminListen {
			field += " (default)"
		}
		return fmt.Errorf("%s: %w; choose another address or stop what listens there", field, err)
	}
	return nil
}

// adminAccess returns the access rules of the admin API.
func (a *App) adminAccess(c config.Admin) (admin.Access, error) {
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
		access.Certificates, access.TLS = keeper, keeper.HTTP()
	}
	return access, nil
}
