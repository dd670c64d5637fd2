package servicecenter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The registry's error codes that make a difference here.
const (
	codeInvalid   = "400001"
	codeNoService = "400012"
)

// registryError is how the registry says no.
type registryError struct {
	Code    code   `json:"errorCode"`
	Message string `json:"errorMessage"`
	Detail  string `json:"detail"`
}

// Error implements error.
func (e *registryError) Error() string {
	text := clip(string(e.Code)) + " " + clip(e.Message)
	if e.Detail != "" && e.Detail != e.Message {
		text += " (" + clip(e.Detail) + ")"
	}
	return text
}

// code is an error code, which is written as a string or as a number.
type code string

// UnmarshalJSON takes whatever there is: a strange code is no reason not to see
// the error.
func (c *code) UnmarshalJSON(data []byte) error {
	*c = code(bytes.Trim(data, `"`))
	return nil
}

// clip keeps what others say to a length that logs and tables can bear.
func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// listed is one version of a service in the registry's list.
type listed struct {
	Key
	version string
	id      string
	watcher bool // of an Isthmus, so no service of anybody
}

// listAnswer is the answer to a list.
type listAnswer struct {
	services []listed
	broken   int  // entries that do not say which service they are
	bare     bool // the answer has no field at all
}

// empty reports whether nothing at all is listed.
func (a listAnswer) empty() bool { return len(a.services) == 0 && a.broken == 0 }

// watcherProperty marks the consumers that watches register.
const watcherProperty = "isthmusWatch"

// decodeList reads the list of services. Nothing but a whole list is one; an
// entry that makes no sense spoils only itself. An object without any field is
// what the registry writes when it has no services, and what anybody else might
// write as well: who reads it must find out which it is.
func decodeList(body []byte) (listAnswer, error) {
	var answer struct {
		Services *[]json.RawMessage `json:"services"`
		registryError
	}
	if err := unmarshal(body, &answer); err != nil {
		return listAnswer{}, err
	}
	if answer.Code != "" && answer.Code != "0" {
		return listAnswer{}, &answer.registryError
	}
	if answer.Services == nil {
		if !isBare(body) {
			return listAnswer{}, lacks("services", body)
		}
		return listAnswer{bare: true}, nil
	}
	out := listAnswer{services: make([]listed, 0, len(*answer.Services))}
	for _, text := range *answer.Services {
		var s service
		if json.Unmarshal(text, &s) != nil || s.Name == "" || s.App == "" {
			out.broken++
			continue
		}
		out.services = append(out.services, listed{s.key(), s.Version, s.ID, s.Properties[watcherProperty] != ""})
	}
	return out, nil
}

// service is what is read of a service of the registry.
type service struct {
	ID          string            `json:"serviceId"`
	Environment string            `json:"environment"`
	App         string            `json:"appId"`
	Name        string            `json:"serviceName"`
	Version     string            `json:"version"`
	Properties  map[string]string `json:"properties"`
}

func (s service) key() Key { return Key{s.Environment, s.App, s.Name} }

// unmarshal decodes a JSON object, and takes nothing else for one.
func unmarshal(body []byte, into any) error {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return fmt.Errorf("the answer is not what a Service Center says: %q", clip(string(trimmed)))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer is cut short or is not what a Service Center says: %w", err)
	}
	return nil
}

// fieldsOf returns the names of the fields of a JSON object, in order.
func fieldsOf(body []byte) []string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // what is no object has none
	return slices.Sorted(maps.Keys(fields))
}

func isBare(body []byte) bool { return len(fieldsOf(body)) == 0 }

// checkAddress is what to do about an answer that no Service Center gives.
const checkAddress = "check that the address is a Service Center's, and that no proxy or gateway answers in its place"

// lacks says that an answer has not got a field that the registry's answers have.
// It names the fields there are, but not what they say: that may be a secret.
func lacks(field string, body []byte) error {
	has := "none"
	if fields := fieldsOf(body); len(fields) > 0 {
		has = clip(strings.Join(fields, ", "))
	}
	return fmt.Errorf("the answer has no field %q (its fields: %s), so it says nothing about what is registered: %s", field, has, checkAddress)
}

// UnmarshalJSON takes an instance of which something is not as it should be,
// and keeps in mind that this is so.
func (i *Instance) UnmarshalJSON(data []byte) error {
	type plain Instance // without this method
	if err := json.Unmarshal(data, (*plain)(i)); err != nil {
		i.broken = err.Error()
	}
	return nil
}

// found is what a batch find answers for one key.
type found struct {
	rev       string
	instances []Instance
	same      bool  // as at the revision that was asked with
	err       error // why there is no answer for this key
}

var errUnanswered = errors.New("the answer of the registry does not speak of it")

// decodeFound reads the answer to a batch find of n keys. Every key has an
// answer afterwards: one that was passed over, or answered twice, has failed.
func decodeFound(body []byte, n int) ([]found, error) {
	var answer struct {
		Services *findAnswer `json:"services"`
		registryError
	}
	if err := unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if answer.Services == nil {
		if answer.Code != "" {
			return nil, &answer.registryError
		}
		return nil, lacks("services", body)
	}
	if answer.Services.silent() {
		return nil, lacks("services.updated, services.notModified or services.failed", body)
	}
	return answer.Services.byIndex(n)
}

type findAnswer struct {
	Updated []struct {
		Index     *int       `json:"index"`
		Rev       *string    `json:"rev"`
		Instances []Instance `json:"instances"`
	} `json:"updated"`
	NotModified []int `json:"notModified"`
	Failed      []struct {
		Indexes []int         `json:"indexes"`
		Error   registryError `json:"error"`
	} `json:"failed"`
}

// silent reports whether the answer speaks of no key. The registry speaks of
// each that it was asked for.
func (a *findAnswer) silent() bool {
	return len(a.Updated) == 0 && len(a.NotModified) == 0 && len(a.Failed) == 0
}

func (a *findAnswer) byIndex(n int) ([]found, error) {
	all, answered := make([]found, n), make([]int, n)
	var stray error
	set := func(index int, f found) {
		if index < 0 || index >= n {
			stray = fmt.Errorf("the answer of the registry speaks of key %d of %d", index, n)
			return
		}
		all[index] = f
		answered[index]++
	}
	for _, u := range a.Updated {
		// No instances are those of a service without any. Without the other two
		// fields, it would be an answer for the first key whatever it is.
		if u.Index == nil || u.Rev == nil {
			return nil, errors.New("an entry of services.updated has no index or no rev: " + checkAddress)
		}
		set(*u.Index, found{rev: *u.Rev, instances: u.Instances})
	}
	for _, index := range a.NotModified {
		set(index, found{same: true})
	}
	for _, f := range a.Failed {
		for _, index := range f.Indexes {
			set(index, found{err: &f.Error})
		}
	}
	for index, times := range answered {
		switch {
		case times == 0:
			all[index] = found{err: errUnanswered}
		case times > 1:
			all[index] = found{err: errors.New("the registry answers twice for it")}
		}
	}
	return all, stray
}

// denied reports whether the registry says that a service does not exist.
func denied(err error) bool {
	e, ok := errors.AsType[*registryError](err)
	return ok && e.Code == codeNoService
}
