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

// Error codes of the registry that are handled here.
const (
	codeInvalid   = "400001"
	codeNoService = "400012"
)

// registryError is an error of the registry.
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

// UnmarshalJSON accepts any value: an unknown form of the code must not hide the
// error.
func (c *code) UnmarshalJSON(data []byte) error {
	*c = code(bytes.Trim(data, `"`))
	return nil
}

// clip truncates text of other systems to a length for logs and tables.
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
	watcher bool // consumer of an Isthmus's watch, so not mirrored
}

// listAnswer is the answer to a list.
type listAnswer struct {
	services []listed
	broken   int  // entries that do not name their service
	bare     bool // the answer has no field at all
}

// empty reports whether no service is listed.
func (a listAnswer) empty() bool { return len(a.services) == 0 && a.broken == 0 }

// watcherProperty marks the consumers that watches register.
const watcherProperty = "isthmusWatch"

// decodeList reads the list of services. A partial list is an error; an invalid entry
// is only counted. An object without any field is the registry's answer if it has no
// services. Other servers may send one as well: the caller must find out.
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

// service is a service of the registry, as far as it is read.
type service struct {
	ID          string            `json:"serviceId"`
	Environment string            `json:"environment"`
	App         string            `json:"appId"`
	Name        string            `json:"serviceName"`
	Version     string            `json:"version"`
	Properties  map[string]string `json:"properties"`
}

func (s service) key() Key { return Key{s.Environment, s.App, s.Name} }

// unmarshal decodes a JSON object, and rejects any other text.
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
	_ = json.Unmarshal(body, &fields) // text that is no object has none
	return slices.Sorted(maps.Keys(fields))
}

func isBare(body []byte) bool { return len(fieldsOf(body)) == 0 }

// checkAddress is the advice for an answer that no Service Center sends.
const checkAddress = "check that the address is a Service Center's, and that no proxy or gateway answers in its place"

// lacks returns the error for an answer without a required field. It names the fields
// of the answer, but no values: they may be secret.
func lacks(field string, body []byte) error {
	has := "none"
	if fields := fieldsOf(body); len(fields) > 0 {
		has = clip(strings.Join(fields, ", "))
	}
	return fmt.Errorf("the answer has no field %q (its fields: %s), so it says nothing about what is registered: %s", field, has, checkAddress)
}

// UnmarshalJSON accepts an instance with an invalid field, and stores the error in
// it.
func (i *Instance) UnmarshalJSON(data []byte) error {
	type plain Instance // without this method
	if err := json.Unmarshal(data, (*plain)(i)); err != nil {
		i.broken = err.Error()
	}
	return nil
}

// found is the answer of a batch find for one key.
type found struct {
	rev       string
	instances []Instance
	same      bool  // unchanged since the revision in the request
	err       error // why there is no answer for this key
}

var errUnanswered = errors.New("the answer of the registry does not speak of it")

// decodeFound reads the answer to a batch find of n keys. Every key has an answer
// afterwards: a key without an answer, or with two, has failed.
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

// silent reports whether the answer contains no key. The registry answers for each
// requested key.
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
		// A service without instances has none in its entry. Without the other two
		// fields, any object would be an answer for the first key.
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

// denied reports whether the registry reports that a service does not exist.
func denied(err error) bool {
	e, ok := errors.AsType[*registryError](err)
	return ok && e.Code == codeNoService
}
