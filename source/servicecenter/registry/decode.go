package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// watcherProperty marks the consumers that watches register.
const watcherProperty = "isthmusWatch"

// service is a service of the registry, as far as it is read.
type service struct {
	ID          string            `json:"serviceId"`
	Environment string            `json:"environment"`
	App         string            `json:"appId"`
	Name        string            `json:"serviceName"`
	Version     string            `json:"version"`
	Properties  map[string]string `json:"properties"`
}

// value returns the service as users of the client know it.
func (s service) value() Service {
	return Service{Key{s.Environment, s.App, s.Name}, s.Version, s.ID, s.Properties[watcherProperty] != ""}
}

// decodeList reads the list of services. A partial list is an error; an invalid entry
// is only counted. An object without any field is the registry's answer if it has no
// services. Other servers may send one as well: the caller must find out.
func decodeList(body []byte) (List, error) {
	var answer struct {
		Services *[]json.RawMessage `json:"services"`
		registryError
	}
	if err := unmarshal(body, &answer); err != nil {
		return List{}, err
	}
	if answer.Code != "" && answer.Code != "0" {
		return List{}, &answer.registryError
	}
	if answer.Services == nil {
		if !isBare(body) {
			return List{}, lacks("services", body)
		}
		return List{bare: true}, nil
	}
	out := List{Services: make([]Service, 0, len(*answer.Services))}
	for _, text := range *answer.Services {
		var s service
		if json.Unmarshal(text, &s) != nil || s.Name == "" || s.App == "" {
			out.Broken++
			continue
		}
		out.Services = append(out.Services, s.value())
	}
	return out, nil
}

// decodeGraph reads the answer of the registry's governance API. The answer contains
// every service, so the answer of an empty registry has no field at all.
func decodeGraph(body []byte, empty bool) ([]Edge, error) {
	var answer struct {
		All *[]struct {
			Service   service   `json:"microService"`
			Providers []service `json:"providers"`
		} `json:"allServicesDetail"`
		registryError
	}
	if err := unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if answer.Code != "" && answer.Code != "0" {
		return nil, &answer.registryError
	}
	if answer.All == nil {
		if empty && isBare(body) {
			return nil, nil
		}
		return nil, lacks("allServicesDetail", body)
	}
	var edges []Edge
	for _, detail := range *answer.All {
		consumer := detail.Service.value()
		if consumer.Watcher {
			continue
		}
		for _, p := range detail.Providers {
			edges = append(edges, Edge{consumer, p.value()})
		}
	}
	return edges, nil
}

// UnmarshalJSON accepts an instance with an invalid field, and stores the error in
// it.
func (i *Instance) UnmarshalJSON(data []byte) error {
	type plain Instance // without this method
	if err := json.Unmarshal(data, (*plain)(i)); err != nil {
		i.Broken = clip(err.Error())
	}
	return nil
}

// Time is a time in milliseconds since 1970, or zero. Registries write it in seconds, as text.
type Time int64

// mostAhead is how far a registry's clock may be ahead. A later time is none.
const mostAhead = 5 * time.Minute

// UnmarshalJSON accepts anything: what is no time is zero.
func (t *Time) UnmarshalJSON(data []byte) error {
	seconds, err := strconv.ParseInt(strings.Trim(string(data), `"`), 10, 64)
	if at := time.Unix(seconds, 0); err == nil && seconds > 0 && time.Until(at) < mostAhead {
		*t = Time(at.UnixMilli())
	}
	return nil
}

var errUnanswered = errors.New("missing in the registry's response")

// decodeFound reads the answer to a batch find of n keys. Every key has an answer
// afterwards: a key without an answer, or with two, has failed.
func decodeFound(body []byte, n int) ([]Found, error) {
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

func (a *findAnswer) byIndex(n int) ([]Found, error) {
	all, answered := make([]Found, n), make([]int, n)
	var stray error
	set := func(index int, f Found) {
		if index < 0 || index >= n {
			stray = fmt.Errorf("the registry's response contains key %d of %d", index, n)
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
		set(*u.Index, Found{Rev: *u.Rev, Instances: u.Instances})
	}
	for _, index := range a.NotModified {
		set(index, Found{Same: true})
	}
	for _, f := range a.Failed {
		for _, index := range f.Indexes {
			set(index, Found{Err: &f.Error})
		}
	}
	for index, times := range answered {
		switch {
		case times == 0:
			all[index] = Found{Err: errUnanswered}
		case times > 1:
			all[index] = Found{Err: errors.New("duplicate in the registry's response")}
		}
	}
	return all, stray
}

var errUnknownConsumer = errors.New("the registry does not know the consumer any more")

// IsUnknownConsumer reports whether a stream ended because its consumer is not
// registered.
func IsUnknownConsumer(err error) bool { return errors.Is(err, errUnknownConsumer) }

// decodeEvent reads the key of an event. Text that is no event is the registry's
// reason for closing.
func decodeEvent(data []byte) (Key, error) {
	var event struct {
		Key *struct {
			Environment string `json:"environment"`
			App         string `json:"appId"`
			Service     string `json:"serviceName"`
		} `json:"key"`
	}
	if err := json.Unmarshal(data, &event); err != nil || event.Key == nil {
		if text := clip(strings.TrimSpace(string(data))); strings.Contains(text, "not exist") {
			return Key{}, fmt.Errorf("%w: %q", errUnknownConsumer, text)
		}
		return Key{}, fmt.Errorf("the registry says on the websocket: %q", clip(strings.TrimSpace(string(data))))
	}
	return Key(*event.Key), nil
}
