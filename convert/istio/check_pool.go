package istio

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"
)

// checkPool checks the settings of a connection pool, if there are any.
func checkPool(pool *networking.ConnectionPoolSettings, at trail, p *problems) {
	if pool == nil {
		return
	}
	http, tcp := pool.GetHttp(), pool.GetTcp()
	if http == nil && tcp == nil {
		p.add(at, "says nothing: write http or tcp, or remove it")
	}
	if http.GetH2UpgradePolicy() == networking.ConnectionPoolSettings_HTTPSettings_UPGRADE && http.GetUseClientProtocol() {
		here := at.field("http")
		p.add(here.field("useClientProtocol"), "goes against h2UpgradePolicy UPGRADE: remove one of them")
	}
	keepAlive := http.GetHttp2KeepAlive()
	for _, d := range []struct {
		value *durationpb.Duration
		path  []string
	}{
		{http.GetIdleTimeout(), []string{"http", "idleTimeout"}},
		{keepAlive.GetInterval(), []string{"http", "http2KeepAlive", "interval"}},
		{keepAlive.GetTimeout(), []string{"http", "http2KeepAlive", "timeout"}},
		{tcp.GetConnectTimeout(), []string{"tcp", "connectTimeout"}},
		{tcp.GetMaxConnectionDuration(), []string{"tcp", "maxConnectionDuration"}},
		{tcp.GetTcpKeepalive().GetTime(), []string{"tcp", "tcpKeepalive", "time"}},
		{tcp.GetTcpKeepalive().GetInterval(), []string{"tcp", "tcpKeepalive", "interval"}},
	} {
		checkDuration(d.value, at, d.path, p)
	}
	if idle := tcp.GetIdleTimeout(); idle.AsDuration().Milliseconds() != 0 { // zero milliseconds mean no timeout
		checkDuration(idle, at, []string{"tcp", "idleTimeout"}, p)
	}
}

func checkDuration(value *durationpb.Duration, at trail, path []string, p *problems) {
	if value == nil {
		return
	}
	steps := make([]trail, len(path)+1)
	steps[0] = at
	for i, name := range path {
		steps[i+1] = steps[i].field(name)
	}
	switch d := value.AsDuration(); {
	case d < time.Millisecond:
		p.add(steps[len(path)], "%s is too short: write 1ms or more", d)
	case d%time.Millisecond != 0:
		p.add(steps[len(path)], "%s is finer than proxies count: write whole milliseconds", d)
	}
}
