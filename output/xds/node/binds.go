package node

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// bindsField is the metadata field with the listeners of a sidecar for its workload, if
// nothing redirects connections to it: a list of {port, bind, target}.
const bindsField = "ISTHMUS_INBOUND"

// mostBinds bounds the entries that are kept: the first ones.
const mostBinds = 64

// bindsOf reads the listeners of a sidecar for its workload. Invalid and conflicting
// entries are left out; wrong gives the reasons.
func bindsOf(node *corev3.Node, p world.Proxy, addresses []string) (binds []world.Bind, wrong error) {
	field, found := node.GetMetadata().GetFields()[bindsField]
	if !found {
		return nil, nil
	}
	if !Unredirected(p) {
		return nil, fmt.Errorf("%s is for sidecars with INTERCEPTION_MODE NONE", bindsField)
	}
	list, isList := field.GetKind().(*structpb.Value_ListValue)
	if !isList {
		return nil, fmt.Errorf("%s is not a list; write [{port: 8080, bind: 10.0.0.7, target: 8080}]", bindsField)
	}
	var errs []error
	for n, value := range list.ListValue.GetValues() {
		if n == mostBinds {
			errs = append(errs, fmt.Errorf("%s has more than %d entries", bindsField, mostBinds))
			break
		}
		b, err := bindOf(value.GetStructValue().GetFields(), addresses)
		if err = cmp.Or(err, unbindable(b, p), obstacle(b, binds)); err != nil {
			errs = append(errs, fmt.Errorf("%s[%d]: %w", bindsField, n, err))
			continue
		}
		binds = append(binds, b)
	}
	slices.SortFunc(binds, func(a, b world.Bind) int { return cmp.Compare(a.At.Port(), b.At.Port()) })
	return binds, errors.Join(errs...)
}

// bindOf reads one entry. Without an address the proxy listens at the first one of the
// workload, as in Istio.
func bindOf(entry map[string]*structpb.Value, addresses []string) (b world.Bind, err error) {
	for name := range entry {
		if name != "port" && name != "bind" && name != "target" {
			return b, fmt.Errorf("%q is not known; use port, bind and target", streams.Cut(name, streams.ShownBytes))
		}
	}
	port, err := portOf("port", entry["port"])
	if err != nil {
		return b, err
	}
	target := port
	if value, found := entry["target"]; found {
		if target, err = portOf("target", value); err != nil {
			return b, err
		}
	}
	at, err := bindAddress(entry["bind"], addresses)
	return world.Bind{At: netip.AddrPortFrom(at, port), To: netip.AddrPortFrom(loopbackOf(at), target)}, err
}

func bindAddress(value *structpb.Value, addresses []string) (netip.Addr, error) {
	text := value.GetStringValue()
	if value == nil && len(addresses) > 0 {
		text = addresses[0]
	}
	ip, err := netip.ParseAddr(text)
	if err != nil || ip.Zone() != "" || ip.IsMulticast() {
		return ip, errors.New("bind is not an address to listen at; write one such as 10.0.0.7 or 0.0.0.0")
	}
	return ip.Unmap(), nil
}

func portOf(key string, v *structpb.Value) (uint16, error) {
	n := v.GetNumberValue()
	if n < 1 || n > math.MaxUint16 || n != math.Trunc(n) {
		return 0, fmt.Errorf("%s is not a port; write a number from 1 to 65535", key)
	}
	return uint16(n), nil
}

// loopbackOf returns the loopback address of a workload behind a proxy's address.
func loopbackOf(at netip.Addr) netip.Addr {
	if at.Is6() {
		return netip.IPv6Loopback()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// unbindable returns why a proxy cannot bind a place at all.
func unbindable(b world.Bind, p world.Proxy) error {
	if p.Unprivileged && b.At.Port() < world.FirstUnprivilegedPort {
		return fmt.Errorf("port %d is below %d, which the proxy cannot bind because of %s; use a higher port", b.At.Port(), world.FirstUnprivilegedPort, unprivilegedField)
	}
	return nil
}

// obstacle returns why a proxy cannot bind one more place. Another entry has the port, or
// connections would loop back to the listener.
func obstacle(b world.Bind, others []world.Bind) error {
	if covers(b.At, b.To) {
		return fmt.Errorf("connections from %s would return to it; use another target or another bind", b.At)
	}
	for _, other := range others {
		switch {
		case b.At.Port() == other.At.Port():
			return fmt.Errorf("port %d is listed twice; list it once", b.At.Port())
		case covers(b.At, other.To):
			return fmt.Errorf("the workload listens at %s itself, the target of another entry; use another port", other.To)
		case covers(other.At, b.To):
			return fmt.Errorf("another entry listens at its target %s; use another target", b.To)
		}
	}
	return nil
}

// covers reports whether a listener at one place receives connections to another.
func covers(at, to netip.AddrPort) bool {
	return at.Port() == to.Port() && (at.Addr() == to.Addr() || at.Addr().IsUnspecified() && at.Addr().Is4() == to.Addr().Is4())
}

// outboundField is the metadata field with the ports of loopback at which a sidecar listens
// for services, if nothing redirects connections to it. It is a list of numbers, "all", or
// numbers separated by commas, since some bootstraps carry only texts.
const outboundField = "ISTHMUS_OUTBOUND"

// allOutbound means the ports of all services.
const allOutbound = "all"

// mostOutbound bounds the ports that are kept: the first ones.
const mostOutbound = 1000

// outboundOf reads the ports at which a sidecar listens for services. Invalid entries are
// left out; wrong gives the reason for each.
func outboundOf(node *corev3.Node, p world.Proxy) (ports world.Ports, wrong error) {
	field, found := node.GetMetadata().GetFields()[outboundField]
	if !found {
		return ports, nil
	}
	if !Unredirected(p) {
		return ports, fmt.Errorf("%s is for sidecars with INTERCEPTION_MODE NONE", outboundField)
	}
	if field.GetStringValue() == allOutbound {
		return world.AllPorts(), nil
	}
	entries, readable := portEntries(field)
	if !readable {
		return ports, fmt.Errorf("%s is not a list of ports; write [8080, 9090], or %q for the ports of all services", outboundField, allOutbound)
	}
	var numbers []uint16
	var errs []error
	for n, entry := range entries {
		if n == mostOutbound {
			errs = append(errs, fmt.Errorf("%s has more than %d entries; list fewer, or write %q", outboundField, mostOutbound, allOutbound))
			break
		}
		number, err := portOf("the entry", entry)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s[%d]: %w", outboundField, n, err))
			continue
		}
		numbers = append(numbers, number)
	}
	return world.PortsOf(numbers), errors.Join(errs...)
}

// portEntries returns the entries of a list of ports, or of its text.
func portEntries(field *structpb.Value) (entries []*structpb.Value, readable bool) {
	switch field := field.GetKind().(type) {
	case *structpb.Value_ListValue:
		return field.ListValue.GetValues(), true
	case *structpb.Value_StringValue:
		for text := range strings.SplitSeq(field.StringValue, ",") {
			number, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
			if err != nil {
				number = 0 // zero is no port
			}
			entries = append(entries, structpb.NewNumberValue(float64(number)))
			if len(entries) > mostOutbound {
				break
			}
		}
		return entries, true
	default:
		return nil, false
	}
}
