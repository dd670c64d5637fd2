package node

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push/world"
)

func listening(t testing.TB, inbound string) *corev3.Node {
	t.Helper()
	return saying(t, bindsField, inbound)
}

// saying is a node with one field of metadata.
func saying(t testing.TB, field, said string) *corev3.Node {
	t.Helper()
	value := &structpb.Value{}
	if err := protojson.Unmarshal([]byte(said), value); err != nil {
		t.Fatal(err)
	}
	return &corev3.Node{Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{field: value}}}
}

// A sidecar that is not redirected to lists the ports of loopback at which it listens. An
// entry that is no port is left out, and the others count.
func TestSidecarsListThePortsOfLoopback(t *testing.T) {
	t.Parallel()
	explicit := world.Proxy{Role: "sidecar", Interception: "NONE"}
	two := world.PortsOf([]uint16{80, 8080})
	for _, test := range []struct {
		name, said string
		proxy      world.Proxy
		want       world.Ports
		wrong      string
	}{
		{"all", `"all"`, explicit, world.AllPorts(), ""},
		{"a list", `[8080, 80, 80]`, explicit, two, ""},
		{"a text", `"8080, 80"`, explicit, two, ""},
		{"an empty list", `[]`, explicit, world.Ports{}, ""},
		{"entries that are no port", `[80, "all", 0, 65536, 1.5, null, 8080]`, explicit, two, "ISTHMUS_OUTBOUND[1]: the entry is not a port"},
		{"a text with an entry that is no port", `"80,all,8080"`, explicit, two, "ISTHMUS_OUTBOUND[1]: the entry is not a port"},
		{"neither", `{"port": 80}`, explicit, world.Ports{}, "is not a list of ports"},
		{"true", `true`, explicit, world.Ports{}, `write [8080, 9090], or "all"`},
		{"too long a list", "[80, 8080" + strings.Repeat(", 80", mostOutbound-2) + ", 9090]", explicit, two, "more than 1000 entries"},
		{"too long a text", `"80,8080` + strings.Repeat(",80", mostOutbound-2) + `,9090"`, explicit, two, "more than 1000 entries"},
		{"redirected", `"all"`, world.Proxy{Role: "sidecar"}, world.Ports{}, "INTERCEPTION_MODE NONE"},
		{"at the edge", `"all"`, world.Proxy{Role: "router", Interception: "NONE"}, world.Ports{}, "for sidecars"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, wrong := outboundOf(saying(t, outboundField, test.said), test.proxy)
			if got != test.want {
				t.Errorf("the ports are %v", got)
			}
			switch {
			case test.wrong == "" && wrong != nil:
				t.Error(wrong)
			case test.wrong != "" && (wrong == nil || !strings.Contains(wrong.Error(), test.wrong)):
				t.Errorf("the error is %v", wrong)
			}
		})
	}
	if got, wrong := outboundOf(&corev3.Node{}, explicit); got != (world.Ports{}) || wrong != nil {
		t.Errorf("of a node that says nothing: %v, %v", got, wrong)
	}
}

func bindsIn(binds []world.Bind) string {
	var list []string
	for _, b := range binds {
		list = append(list, b.At.String()+"="+b.To.String())
	}
	return strings.Join(list, " ")
}

// A sidecar that is not redirected to says where it listens for its workload. An entry that
// is wrong is left out, and the others count.
func TestSidecarsSayWhereTheyListen(t *testing.T) {
	t.Parallel()
	explicit := world.Proxy{Role: "sidecar", Interception: "NONE"}
	for _, test := range []struct {
		name, said string
		proxy      world.Proxy
		addresses  []string
		want       string
		wrong      []string
	}{
		{"the workload's first address", `[{"port": 80}]`, explicit, []string{"10.0.0.7", "10.0.0.8"}, "10.0.0.7:80=127.0.0.1:80", nil},
		{"IPv6", `[{"port": 80, "target": 8080}]`, explicit, []string{"fd00::7"}, "[fd00::7]:80=[::1]:8080", nil},
		{
			"in order", `[{"port": 90, "bind": "0.0.0.0", "target": 91}, {"port": 80, "bind": "127.0.0.1", "target": 81}]`, explicit, nil,
			"127.0.0.1:80=127.0.0.1:81 0.0.0.0:90=127.0.0.1:91", nil,
		},
		{"an address of IPv4 in IPv6", `[{"port": 80, "bind": "::ffff:10.0.0.7"}]`, explicit, nil, "10.0.0.7:80=127.0.0.1:80", nil},
		{"no address is known", `[{"port": 80}]`, explicit, nil, "", []string{"[0]: bind is not an address"}},
		{
			"without privileges", `[{"port": 80}, {"port": 1023, "target": 8080}, {"port": 1024, "target": 80}]`,
			world.Proxy{Role: "sidecar", Interception: "NONE", Unprivileged: true},
			[]string{"10.0.0.7"},
			"10.0.0.7:1024=127.0.0.1:80",
			[]string{"[0]: port 80 is below 1024", "[1]: port 1023 is below 1024"},
		},
		{"no list", `{"port": 80}`, explicit, []string{"10.0.0.7"}, "", []string{"is not a list"}},
		{"redirected", `[{"port": 80}]`, world.Proxy{Role: "sidecar"}, []string{"10.0.0.7"}, "", []string{"INTERCEPTION_MODE NONE"}},
		{"at the edge", `[{"port": 80}]`, world.Proxy{Role: "router", Interception: "NONE"}, []string{"10.0.0.7"}, "", []string{"for sidecars"}},
		{
			"nonsense", `[{"port": 80}, 7, {}, {"port": "80"}, {"port": 0}, {"port": 65536}, {"port": 1.5}, {"port": 81, "bind": "x"}, {"port": 81, "bind": 4},
			{"port": 81, "bind": "224.0.0.1"}, {"port": 81, "target": -1}, {"port": 81, "protocol": "HTTP"}, {"port": 80, "target": 8}]`, explicit,
			[]string{"10.0.0.7"},
			"10.0.0.7:80=127.0.0.1:80",
			[]string{"[1]: port", "[2]: port", "[3]: port", "[4]: port", "[5]: port", "[6]: port", "[7]: bind", "[8]: bind", "[9]: bind", "[10]: target", `[11]: "protocol"`, "[12]: port 80 is listed twice"},
		},
		{
			"to itself", `[{"port": 80, "bind": "0.0.0.0"}, {"port": 81, "bind": "127.0.0.1"}, {"port": 82, "bind": "::"}]`, explicit, nil, "",
			[]string{"[0]: connections from 0.0.0.0:80 would return", "[1]: connections from", "[2]: connections from"},
		},
		{
			"in a circle", `[{"port": 80, "bind": "127.0.0.1", "target": 81}, {"port": 81, "bind": "127.0.0.1", "target": 80}, {"port": 82, "bind": "10.0.0.7", "target": 80}]`, explicit, nil,
			"127.0.0.1:80=127.0.0.1:81",
			[]string{"[1]: the workload listens at 127.0.0.1:81 itself", "[2]: another entry listens at its target 127.0.0.1:80"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			binds, wrong := bindsOf(listening(t, test.said), test.proxy, test.addresses)
			if got := bindsIn(binds); got != test.want {
				t.Errorf("it listens at %q, not at %q", got, test.want)
			}
			lines := 0
			if wrong != nil {
				lines = strings.Count(wrong.Error(), "\n") + 1
			}
			if lines != len(test.wrong) {
				t.Fatalf("left out: %v, want %q", wrong, test.wrong)
			}
			for n, want := range test.wrong {
				if line := strings.Split(wrong.Error(), "\n")[n]; !strings.Contains(line, want) {
					t.Errorf("%q was not said, but %q", want, line)
				}
			}
		})
	}
}

// Whatever a node says, the ports are few, each is there once, and nothing that is taken
// at one of them comes back to any.
func TestListenersOfAWorkloadLeadNowhereElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		list := &structpb.ListValue{}
		for range rapid.SampledFrom([]int{1, 2, 3, 10, 200}).Draw(rt, "entries") {
			entry := map[string]*structpb.Value{}
			for _, key := range []string{"port", "bind", "target"} {
				if rapid.IntRange(0, 3).Draw(rt, "has") > 0 {
					entry[key] = rapid.SampledFrom([]*structpb.Value{
						structpb.NewStringValue("127.0.0.1"), structpb.NewStringValue("0.0.0.0"), structpb.NewStringValue("::"), structpb.NewStringValue("10.0.0.7"),
						structpb.NewNumberValue(80), structpb.NewNumberValue(81), structpb.NewNumberValue(float64(rapid.IntRange(-1, 70_000).Draw(rt, "n"))),
					}).Draw(rt, key)
				}
			}
			list.Values = append(list.Values, structpb.NewStructValue(&structpb.Struct{Fields: entry}))
		}
		node := &corev3.Node{Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{bindsField: structpb.NewListValue(list)}}}
		binds, _ := bindsOf(node, world.Proxy{Role: "sidecar", Interception: "NONE"}, []string{"10.0.0.7"})
		if len(binds) > mostBinds {
			rt.Fatalf("%d are kept", len(binds))
		}
		for n, a := range binds {
			if n > 0 && a.At.Port() <= binds[n-1].At.Port() {
				rt.Fatalf("out of order: %v", binds)
			}
			for _, b := range binds {
				if covers(a.At, b.To) {
					rt.Fatalf("%v takes what is meant for %v", a, b)
				}
			}
		}
	})
}
