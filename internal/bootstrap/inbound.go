package bootstrap

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// bind is a listener of an Envoy for its workload. Its JSON form is the node metadata that
// Isthmus reads.
type bind struct {
	Port   uint16 `json:"port"`
	Bind   string `json:"bind,omitempty"`   // the first address of the workload if empty
	Target uint16 `json:"target,omitempty"` // the same port if 0
}

// listen adds the listeners for the workload to the metadata.
func (p *page) listen() error {
	if len(p.Node.Inbound) == 0 || p.Metadata == nil { // reported as another error
		return nil
	}
	if p.Node.Interception != "NONE" {
		return fmt.Errorf("--inbound: connections to %q are redirected to the sidecar; add --interception NONE, or remove the flag", p.Node.Inbound[0])
	}
	var binds []bind
	for _, text := range p.Node.Inbound {
		b, ok := parseBind(text)
		if !ok {
			return fmt.Errorf("--inbound: %q is not of the form [ADDRESS:]PORT[=TARGET], such as 8080, 0.0.0.0:80=8080 or [fd00::7]:8080", text)
		}
		binds = append(binds, b)
	}
	p.Metadata["ISTHMUS_INBOUND"] = binds
	return nil
}

// allPorts selects the ports of all services.
const allPorts = "all"

// call adds the loopback ports of services to the metadata.
func (p *page) call() error {
	outbound := p.Node.Outbound
	if p.Metadata == nil { // reported as another error
		return nil
	}
	if p.Node.Interception != "NONE" {
		if len(outbound) > 0 {
			return errors.New("--outbound: a sidecar listens at loopback ports only if connections are not redirected; add --interception NONE, or remove the flag")
		}
		return nil
	}
	if len(outbound) == 0 || len(outbound) == 1 && outbound[0] == allPorts {
		p.Metadata["ISTHMUS_OUTBOUND"] = allPorts
		return nil
	}
	var ports []uint16
	for _, text := range outbound {
		number, ok := parsePort(text)
		if !ok {
			return fmt.Errorf("--outbound: %q is not a port; write ports from 1 to 65535, such as 8080,9090, or %q alone", text, allPorts)
		}
		ports = append(ports, number)
	}
	p.Metadata["ISTHMUS_OUTBOUND"] = ports
	return nil
}

func parseBind(text string) (b bind, ok bool) {
	listen, target, redirected := strings.Cut(text, "=")
	if redirected {
		if b.Target, ok = parsePort(target); !ok {
			return b, false
		}
	}
	if b.Port, ok = parsePort(listen); ok {
		return b, true
	}
	at, err := netip.ParseAddrPort(listen)
	if err != nil || at.Port() == 0 || at.Addr().Zone() != "" {
		return b, false
	}
	b.Bind, b.Port = at.Addr().String(), at.Port()
	return b, true
}

func parsePort(text string) (uint16, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err == nil && n > 0
}
