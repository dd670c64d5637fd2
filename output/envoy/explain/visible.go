package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// resolve finds the service that the host names for the client. Otherwise it ends the way,
// with the reason.
func (f follower) resolve() bool {
	host := f.known()
	if host == "" {
		f.trace.End("service", fmt.Sprintf("no service has the host %q", f.call.Host), "isthmus services lists the hosts; isthmus sources shows rejected objects and registries that cannot be read; isthmus events shows what was removed")
		return false
	}
	if called := model.Name(f.call.Host); called != f.call.Host && reach.IsGRPC(f.call.Client.Kind) {
		f.trace.End("service", fmt.Sprintf("gRPC asks for names as they are dialled, and there is none of the spelling %q", f.call.Host), fmt.Sprintf("dial xds:///%s", names.Listener(called, f.call.Port)))
		return false
	}
	if host != model.Name(f.call.Host) {
		f.trace.Pass("service", fmt.Sprintf("%q is a call of the host %s", f.call.Host, host))
	}
	if s, ok := f.Snapshot.Resolve(f.viewer, host); ok {
		f.trace.Service = s
		f.trace.Pass("service", fmt.Sprintf("%s of namespace %s, from %s", host, s.Key.Namespace, sourcesOf(s)))
		f.trace.Pass("export", "exported to "+exports(s.ServiceDefinition))
		if f.viewer.Scope != nil {
			f.trace.Pass("scope", f.viewer.Scope.String()+" lets the client see it")
		}
		return true
	}
	f.hidden(host)
	return false
}

// known returns the host of a service that the called host may mean: itself, a short name in
// the cluster's domain, or a wildcard. It returns an empty text if there is none.
func (f follower) known() string {
	called := model.Name(f.call.Host)
	candidates := []string{called}
	if host, short := names.LongName(called, f.call.Client.Namespace, f.Settings.OrIstio().Domain); short {
		candidates = append(candidates, host)
	}
	if kind := f.call.Client.Kind; reach.IsGRPC(kind) { // each has a listener, and the first one counts
		for _, host := range candidates {
			s, visible := f.Snapshot.Resolve(f.viewer, host)
			if !visible {
				continue
			}
			if port, has := s.Port(f.call.Port); has && reach.FormFor(kind, s, port) != reach.NoForm {
				return host
			}
		}
	}
	for rest := called; strings.Contains(rest, "."); {
		_, rest, _ = strings.Cut(rest, ".")
		candidates = append(candidates, "*."+rest)
	}
	for _, host := range candidates {
		for range f.Snapshot.ByHost(host) {
			return host
		}
	}
	return ""
}

// hidden ends the way to a host with services that the client does not see.
func (f follower) hidden(host string) {
	all := slices.Collect(f.Snapshot.ByHost(host))
	unscoped := catalog.Viewer{Namespace: f.viewer.Namespace}
	if s, ok := f.Snapshot.Resolve(unscoped, host); ok {
		f.trace.Service = s
		f.trace.End("scope", fmt.Sprintf("%s does not let the client see %s of namespace %s", f.viewer.Scope, host, s.Key.Namespace),
			fmt.Sprintf("add %q to egress.hosts of that Sidecar", s.Key.Namespace+"/"+host))
		return
	}
	s := all[0]
	record := recordText(s.Records[0])
	where, next := fmt.Sprintf("namespace %q", f.viewer.Namespace), fmt.Sprintf("add %q to exportTo of %s", f.viewer.Namespace, record)
	switch {
	case f.viewer.Namespace == "":
		where, next = "clients without a namespace", "give the client a namespace in its node metadata, or set exportTo of "+record+` to ["*"]`
	case slices.Contains(slices.Collect(s.ExportTo.All()), "~"):
		next = fmt.Sprintf("set exportTo of %s to [%q]", record, f.viewer.Namespace)
	}
	f.trace.Service = s
	f.trace.End("export", fmt.Sprintf("%s of namespace %s is exported to %s, and not to %s", host, s.Key.Namespace, exports(s.ServiceDefinition), where), next)
}

func exports(s catalog.ServiceDefinition) string {
	list := slices.Collect(s.ExportTo.All())
	switch {
	case len(list) == 0, slices.Contains(list, "*"):
		return "all namespaces"
	case slices.Contains(list, "~"):
		return "no namespace"
	}
	for i, to := range list {
		if to == "." {
			list[i] = s.Key.Namespace
		}
	}
	return "namespace " + textOf(list)
}

func sourcesOf(s *catalog.Service) string {
	if list := s.Sources(); len(list) == 1 {
		return "source " + list[0]
	}
	return "sources " + strings.Join(s.Sources(), ", ")
}
