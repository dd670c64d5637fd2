package nacos_test

import (
	"fmt"
	"strings"
	"testing"
)

// Nacos takes names, addresses and ports that no mesh takes, and passes them on. Each
// is rejected with the reason, and what is right beside it is served.
func TestWhatNacosShouldNotTakeIsRejectedByItself(t *testing.T) {
	t.Parallel()
	n := useShared(t)
	views := look(t, n.readers)
	bad := map[string]instance{
		`spec.hosts[0]: "under_score" is not a part of a DNS name`: {Service: "under_score", IP: "10.6.0.1", Port: 80},
		`0 is not a port`: {Service: "portless", IP: "10.6.0.2"},
		`spec.endpoints[0].address: "db.example.com" is not an IP address`: {Service: "named", IP: "db.example.com", Port: 80},
	}
	for _, i := range bad {
		n.mustRegister(t, i)
	}
	n.mustRegister(t, instance{Service: "six", IP: "fd00::6", Port: 80})
	n.mustRegister(t, instance{Service: "dotted.name", IP: "10.6.0.3", Port: 80})
	expect(t, views, "six.DEFAULT-GROUP.public.nacos", "fd00::6:80")
	expect(t, views, "dotted.name.DEFAULT-GROUP.public.nacos", "10.6.0.3:80")
	for _, v := range views {
		for reason, i := range bad {
			await(t, i.Service+" to be rejected", func() error { return v.rejects(i.Service, reason) })
		}
	}
	for _, i := range bad {
		if err := n.Deregister(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range views {
		await(t, "nothing to be rejected", func() error {
			if v.rejects("", "") == nil {
				return fmt.Errorf("%s still rejects something", v.name)
			}
			return nil
		})
	}
}

// An instance of port 0 keeps nobody where they were: neither the instances that stay
// beside it, nor those that go.
func TestAnInstanceWithoutAPortFreezesNothing(t *testing.T) {
	t.Parallel()
	n := useShared(t)
	views := look(t, n.readers)
	const host = "frozen.DEFAULT-GROUP.public.nacos"
	good := []instance{{Service: "frozen", IP: "10.6.1.1", Port: 80}, {Service: "frozen", IP: "10.6.1.2", Port: 80}}
	bad := instance{Service: "frozen", IP: "10.6.1.3"}
	for _, i := range append(good, bad) {
		n.mustRegister(t, i)
	}
	expect(t, views, host, "10.6.1.1:80", "10.6.1.2:80")
	for _, v := range views {
		await(t, "the instance to be rejected", func() error { return v.rejects("frozen", "ports.http: 0 is not a port") })
	}
	for i, left := range [][]string{{"10.6.1.2:80"}, nil} { // the last one of a service that has a port, too
		if err := n.Deregister(t.Context(), good[i]); err != nil {
			t.Fatal(err)
		}
		expect(t, views, host, left...)
	}
	if err := n.Deregister(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
}

// rejects fails if no service of a name is rejected for a reason.
func (i *isthmus) rejects(service, reason string) error {
	var sources []source
	if err := i.ask("/api/v1/sources", &sources); err != nil {
		return err
	}
	for _, r := range sources[0].Rejected {
		if strings.Contains(r.Object, "public/"+service) && strings.Contains(r.Field+": "+r.Reason, reason) {
			return nil
		}
	}
	return fmt.Errorf("%s rejects %+v", i.name, sources[0].Rejected)
}
