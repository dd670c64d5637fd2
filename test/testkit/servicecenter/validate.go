package servicecenter

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// rule is the constraint on a field. Its text, in an answer, is the original's.
type rule struct {
	lowest, highest int // in characters; none if 0
	pattern         string
	says            string // the displayed name of the pattern, if not the pattern itself
}

func (r rule) String() string {
	var parts []string
	if r.lowest > 0 {
		parts = append(parts, fmt.Sprintf("Min: %d", r.lowest))
	}
	if r.highest > 0 {
		parts = append(parts, fmt.Sprintf("Max: %d", r.highest))
	}
	if r.pattern != "" {
		parts = append(parts, "Regexp: "+cmp.Or(r.says, r.pattern))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (r rule) holds(value string) bool {
	n := len([]rune(value))
	ok, err := regexp.MatchString(r.pattern, value)
	return n >= r.lowest && (r.highest == 0 || n <= r.highest) && ok && err == nil
}

// field is a value to be checked.
type field struct {
	name, value string
	rule        rule
}

func check(of string, fields ...field) *Error {
	for _, f := range fields {
		if !f.rule.holds(f.value) {
			return reject(Invalid, "field '%s.%s' invalid value '%s' does not match rule: %s", of, f.name, f.value, f.rule)
		}
	}
	return nil
}

const (
	namePattern    = `^[a-zA-Z0-9]*$|^[a-zA-Z0-9][a-zA-Z0-9_\-.]*[a-zA-Z0-9]$`
	searchPattern  = `^[a-zA-Z0-9]*$|^[a-zA-Z0-9][a-zA-Z0-9_\-.:]*[a-zA-Z0-9]$`
	envPattern     = `^(development|testing|acceptance|production)*$`
	versionPattern = `^(0|[1-9]\d*)(\.(0|[1-9]\d*)){0,3}$`
	versionForm    = "the form x[.y[.z]] where x y and z are 0-32767 range"
	aliasPattern   = `^[a-zA-Z0-9_\-.:]*$`
	visible        = `\S+`
	placePattern   = `^[A-Za-z0-9_.-]+$`
	statusPattern  = `^(UP|DOWN|STARTING|TESTING|OUTOFSERVICE)$`
)

func (s *Service) valid() *Error {
	return check("MicroService",
		field{"ServiceId", s.ID, rule{0, 64, `^\S*$`, ""}},
		field{"AppId", s.App, rule{0, 160, namePattern, ""}},
		field{"ServiceName", s.Name, rule{1, 128, namePattern, ""}},
		field{"Version", s.Version, rule{highest: 64, pattern: versionPattern, says: versionForm}},
		field{"Environment", s.Environment, rule{0, 0, envPattern, ""}},
		field{"Description", s.Description, rule{0, 256, "", ""}},
		field{"Level", s.Level, rule{0, 0, `^(FRONT|MIDDLE|BACK)$`, ""}},
		field{"Status", s.Status, rule{0, 0, `^(UP|DOWN)?$`, ""}},
		field{"Alias", s.Alias, rule{0, 128, aliasPattern, ""}},
	)
}

func (k *Key) validForSearch(of string) *Error {
	return check(of,
		field{"AppId", k.App, rule{1, 160, namePattern, ""}},
		field{"Environment", k.Environment, rule{0, 0, envPattern, ""}},
		field{"ServiceName", k.Name, rule{1, 160 + 1 + 128, searchPattern, ""}},
	)
}

func (r *batchRequest) valid() *Error {
	for _, of := range r.Services {
		if of.Service == nil {
			return reject(Invalid, "field 'FindService.Service' invalid value '<nil>' does not match rule: {Min: 1}")
		}
		if err := of.Service.validForSearch("MicroServiceKey"); err != nil {
			return err
		}
	}
	for _, of := range r.Instances {
		if of.Instance == nil {
			return reject(Invalid, "field 'FindInstance.Instance' invalid value '<nil>' does not match rule: {Min: 1}")
		}
		err := check("HeartbeatSetElement",
			field{"ServiceId", of.Instance.ServiceID, rule{1, 64, `^\S*$`, ""}},
			field{"InstanceId", of.Instance.InstanceID, rule{1, 64, `^[A-Za-z0-9_.-]*$`, ""}})
		if err != nil {
			return err
		}
	}
	return nil
}

func (i *Instance) valid() *Error {
	const of = "MicroServiceInstance"
	for _, e := range i.Endpoints {
		if err := check(of, field{"Endpoints", e, rule{0, 0, visible, ""}}); err != nil {
			return err
		}
	}
	err := check(of,
		field{"HostName", i.HostName, rule{1, 64, visible, ""}},
		field{"InstanceId", i.ID, rule{0, 64, `^[A-Za-z0-9_.-]*$`, ""}},
		field{"ServiceId", i.ServiceID, rule{1, 64, `^\S*$`, ""}},
		field{"Status", i.Status, rule{0, 0, "^(UP|DOWN|STARTING|TESTING|OUTOFSERVICE)?$", ""}})
	if err != nil {
		return err
	}
	if i.HealthCheck != nil {
		if err := check("HealthCheck", field{"Mode", i.HealthCheck.Mode, rule{0, 0, `^(push|pull)$`, ""}}); err != nil {
			return err
		}
	}
	if d := i.DataCenter; d != nil {
		return check("DataCenterInfo", field{"Name", d.Name, rule{1, 128, placePattern, ""}},
			field{"Region", d.Region, rule{1, 128, placePattern, ""}}, field{"AvailableZone", d.Zone, rule{1, 128, placePattern, ""}})
	}
	return nil
}

func checkStatus(status string) *Error {
	return check("UpdateInstanceStatusRequest", field{"Status", status, rule{0, 0, statusPattern, ""}})
}
