package envoy

import (
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// encode puts the listener around its table.
func (l dnsListener) encode(table *pieces) push.Encoded {
	loopback := proxy{mode: none, family: l.view.proxy.family}.shared()
	body := wire.DNSListener(l.name, loopback, l.view.settings.DNS, table.size)
	return push.Encoded{Name: l.name, Version: versionOf(body).Plus(table.sum), Body: body, Tail: table}
}

// fragmentOf is what is answered for names of a service. It is made once for all views
// that are given the same.
func (h *namedHost) fragmentOf(names, addresses []string, ttl time.Duration) *fragment {
	key := strings.Join(names, " ") + "\n" + strings.Join(addresses, " ")
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.made[key]
	if f == nil {
		if h.made == nil {
			h.made = map[string]*fragment{}
		}
		text := wire.DNSAnswers(names, addresses, ttl)
		f = &fragment{text, versionOf(text)}
		h.made[key] = f
	}
	return f
}
