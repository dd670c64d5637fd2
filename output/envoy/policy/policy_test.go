package policy

import "testing"

// Without outlier detection nobody finds out that near endpoints fail.
func TestFailoverNeedsOutlierDetection(t *testing.T) {
	on, off, detection := true, false, &OutlierDetection{}
	detection.SetDefaults()
	for name, test := range map[string]struct {
		defaults, own Policy
		wrong, works  bool
	}{
		"nothing is said":       {},
		"detection alone":       {own: Policy{OutlierDetection: detection}, works: true},
		"by default":            {defaults: Policy{OutlierDetection: detection}, own: Policy{LocalityFailover: &on}, works: true},
		"off":                   {defaults: Policy{OutlierDetection: detection}, own: Policy{LocalityFailover: &off}},
		"without it":            {own: Policy{LocalityFailover: &on}, wrong: true},
		"without it by default": {defaults: Policy{LocalityFailover: &on}, own: Policy{OutlierDetection: detection}, wrong: true, works: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := New()
			s.Defaults, s.Hosts = test.defaults, []HostPolicy{{Host: "a.example", Policy: test.own}}
			if err := s.Validate(); (err != nil) != test.wrong {
				t.Errorf("valid: %v", err)
			}
			if got := s.Prepare().Of("a.example").FailsOver(); got != test.works {
				t.Errorf("it works: %t", got)
			}
		})
	}
}
