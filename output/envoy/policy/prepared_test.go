package policy

import (
	"testing"
	"time"
)

// The first entry that matches a host completes its policy by the defaults, each part as
// a whole.
func TestPolicyIsOfTheFirstEntryThatMatches(t *testing.T) {
	second, third := 2*time.Second, 3*time.Second
	entry := func(host string, timeout *time.Duration) HostPolicy {
		return HostPolicy{Host: host, Policy: Policy{ConnectTimeout: timeout}}
	}
	minute := time.Minute
	s := (&Settings{
		Defaults: Policy{ConnectTimeout: &minute, Retries: &Retries{Attempts: 7}},
		Hosts: []HostPolicy{
			entry("A.shop.Example.com.", &second), entry("*.Shop.example.com", &third), entry("b.shop.example.com", &second),
			entry("*.example.com", nil), entry("*.shop.example.com", &second),
		},
	}).Prepare()
	for host, want := range map[string]time.Duration{
		"a.shop.example.com": second, "b.shop.example.com": third, "x.y.shop.example.com": third,
		"*.shop.example.com": third, "shop.example.com": minute, "example.com": minute, "": minute, ".": minute, "com": minute,
		"notshop.example.com": minute,
	} {
		p := s.Of(host)
		if *p.ConnectTimeout != want || p.Retries.Attempts != 7 {
			t.Errorf("%q is connected to within %s, want %s; %+v", host, *p.ConnectTimeout, want, p.Retries)
		}
		if p != s.Of(host) {
			t.Errorf("the policy of %q is another each time", host)
		}
	}
	if p := New().Prepare().Of("x"); *p != (Policy{}) {
		t.Errorf("nothing is said, and %+v holds", p)
	}
}

// The settings find the entry of a host as the prepared settings do.
func TestSettingsFindTheEntryOfAHost(t *testing.T) {
	t.Parallel()
	s := New()
	s.Hosts = []HostPolicy{
		{Host: "A.example.com", Subsets: []Subset{{Name: "exact"}}},
		{Host: "*.Example.com", Subsets: []Subset{{Name: "wildcard"}}, Policy: Policy{OutlierDetection: &OutlierDetection{}}},
		{Host: "b.example.com", Subsets: []Subset{{Name: "late"}}},
		{Host: "*.com", Subsets: []Subset{{Name: "rest"}}},
	}
	p := s.Prepare()
	for _, host := range []string{"a.example.com", "b.example.com", "x.y.example.com", "example.com", "com", "*.example.com", ".com", "aexample.com", "a.org", ""} {
		of := p.Of(host)
		names := map[string]bool{}
		for _, one := range p.Subsets(of) {
			names[one.Name] = true
		}
		got := s.Subsets(host)
		for name := range got {
			if !names[name] {
				t.Errorf("%q: has the subset %s, want %v", host, name, names)
			}
		}
		if len(got) != len(names) || s.FailsOver(host) != of.FailsOver() {
			t.Errorf("%q: subsets %v, fails over %t, want %v and %t", host, got, s.FailsOver(host), names, of.FailsOver())
		}
	}
}
