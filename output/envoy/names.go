package envoy

import (
	"strconv"
	"strings"
)

// Clusters, their load assignments and their route configurations carry
// Istio's name of a destination, "outbound|<port>|<subset>|<host>". The subset is
// empty where all endpoints are meant.
const outbound = "outbound|"

// ClusterName returns the name of a service port's cluster, load assignment
// and route configuration.
func ClusterName(host string, port uint32) string {
	return string(appendClusterName(make([]byte, 0, clusterNameSize(host, port)), host, port))
}

// SubsetName is the same for some of the port's endpoints.
func SubsetName(host string, port uint32, subset string) string {
	if subset == "" {
		return ClusterName(host, port)
	}
	return outbound + strconv.FormatUint(uint64(port), 10) + "|" + subset + "|" + host
}

// cutSubset splits what [SubsetName] writes: the name of all endpoints, and the subset.
func cutSubset(name string) (whole, subset string) {
	rest, outward := strings.CutPrefix(name, outbound)
	port, rest, _ := strings.Cut(rest, "|")
	subset, host, found := strings.Cut(rest, "|")
	if !outward || !found || subset == "" {
		return name, ""
	}
	return outbound + port + "||" + host, subset
}

func appendClusterName(b []byte, host string, port uint32) []byte {
	b = append(b, outbound...)
	b = strconv.AppendUint(b, uint64(port), 10)
	b = append(b, "||"...)
	return append(b, host...)
}

func clusterNameSize(host string, port uint32) int {
	digits := 1
	for ; port >= 10; port /= 10 {
		digits++
	}
	return len(outbound) + digits + len("||") + len(host)
}

// parseClusterName accepts exactly what [ClusterName] writes.
func parseClusterName(name string) (host string, port uint32, ok bool) {
	rest, outward := strings.CutPrefix(name, outbound)
	digits, host, found := strings.Cut(rest, "||")
	if !outward || !found || host == "" {
		return "", 0, false
	}
	port, ok = parsePort(digits)
	return host, port, ok
}

// ListenerName returns the name under which a gRPC client asks for a service
// port: the authority of its target, "<host>:<port>".
func ListenerName(host string, port uint32) string {
	return host + ":" + strconv.FormatUint(uint64(port), 10)
}

// parseListenerName accepts exactly what [ListenerName] writes. A host may
// itself hold colons; the port follows the last.
func parseListenerName(name string) (host string, port uint32, ok bool) {
	colon := strings.LastIndexByte(name, ':')
	if colon <= 0 {
		return "", 0, false
	}
	port, ok = parsePort(name[colon+1:])
	return name[:colon], port, ok
}

// parsePort reads a port number in the one form it is written in. Were 080
// taken for 80, one resource would have many names, and the client would be
// sent one it did not ask for.
func parsePort(digits string) (uint32, bool) {
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || digits[0] == '+' || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	return uint32(n), true
}
