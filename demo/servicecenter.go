package demo

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// serviceCenter is the demo's small stand-in for ServiceComb Service Center. It answers the
// requests that the demo needs in the form of the original's v4 API: Isthmus lists the
// services and finds their instances; users register and unregister instances. Unlike the
// original, it shows every change at once, needs no heartbeats, has only the project
// default, and the name of a service is its id. Any goroutine may call its methods.
type serviceCenter struct {
	url     string
	down    atomic.Bool // an error answers every request
	server  *http.Server
	serving sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	services []*registered
	revision int
	changes  []time.Time // the latest, at most someChanges
}

const someChanges = 100

// registered is a service in the API's form, with its instances.
type registered struct {
	ID          string `json:"serviceId"`
	App         string `json:"appId"`
	Name        string `json:"serviceName"`
	Version     string `json:"version"`
	Environment string `json:"environment"`
	Status      string `json:"status"`

	instances []registration
	revision  string
}

// registration is an instance in the API's form.
type registration struct {
	ID        string   `json:"instanceId"`
	ServiceID string   `json:"serviceId"`
	HostName  string   `json:"hostName"`
	Endpoints []string `json:"endpoints"`
	Status    string   `json:"status"`
	Version   string   `json:"version"`
}

const (
	allServices  = "/v4/default/registry/microservices"
	allInstances = allServices + "/{service}/instances"
	largestBody  = 2 << 20 // as the original's
)

// startServiceCenter serves on a free port of the loopback interface. Like the original, it
// lists itself.
func startServiceCenter() (*serviceCenter, error) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &serviceCenter{url: "http://" + listen.Addr().String()}
	c.replace("default", "SERVICECENTER", nil)
	mux := http.NewServeMux()
	mux.Handle("GET "+allServices, c.answering(c.list))
	mux.Handle("POST /v4/default/registry/instances/action", c.answering(c.find))
	mux.Handle("POST "+allInstances, c.answering(c.register))
	mux.Handle("DELETE "+allInstances+"/{instance}", c.answering(c.unregister))
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	c.serving.Go(func() { _ = c.server.Serve(listen) }) // Serve ends only when the server is closed
	return c, nil
}

func (c *serviceCenter) close() {
	_ = c.server.Close() // the listener's error does not matter any more
	c.serving.Wait()
}

// replace registers a service, unless it is registered, and replaces all its instances.
func (c *serviceCenter) replace(app, name string, instances []registration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.service(name)
	if s == nil {
		s = &registered{ID: name, App: app, Name: name, Version: "1.0.0", Environment: environment, Status: "UP"}
		c.services = append(c.services, s)
	}
	c.set(s, instances)
}

// changed returns the time of the last change before a time; zero if that is too long ago.
func (c *serviceCenter) changed(before time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range slices.Backward(c.changes) {
		if at.Before(before) {
			return at
		}
	}
	return time.Time{}
}

// service returns the service of an id, or nil; the lock is held.
func (c *serviceCenter) service(id string) *registered {
	for _, s := range c.services {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// set replaces the instances of a service; the lock is held.
func (c *serviceCenter) set(s *registered, instances []registration) {
	for n := range instances {
		i := &instances[n]
		i.ServiceID, i.Status, i.Version = s.ID, "UP", s.Version
	}
	c.revision++
	s.instances, s.revision = instances, strconv.Itoa(c.revision)
	c.changes = append(c.changes, time.Now())
	c.changes = c.changes[max(0, len(c.changes)-someChanges):]
}

// problem is the body of an answer other than success. The first digits of the code are
// the status.
type problem struct {
	Code    int    `json:"errorCode,string"`
	Message string `json:"errorMessage"`
}

var (
	badBody    = &problem{400001, "Invalid parameter(s)"}
	noService  = &problem{400012, "Micro-service does not exist"}
	noInstance = &problem{400017, "Instance does not exist"}
)

// answering answers requests with what a function returns, which is called with the lock
// held. No answer is an empty body.
func (c *serviceCenter) answering(answer func(*http.Request, []byte) (any, *problem)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.down.Load() {
			http.Error(w, "under maintenance", http.StatusServiceUnavailable)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		value, no := answer(r, body)
		var text []byte
		status := http.StatusOK
		if no != nil {
			value, status = no, no.Code/1000
		}
		if value != nil {
			text, err = json.Marshal(value)
		}
		c.mu.Unlock()
		if err != nil {
			panic(err) // strings can always be encoded
		}
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		w.WriteHeader(status)
		_, _ = w.Write(text) // the client may be gone
	})
}

func (c *serviceCenter) list(*http.Request, []byte) (any, *problem) {
	return map[string]any{"services": c.services}, nil
}

// find answers several finds, each with the known revision of the client.
func (c *serviceCenter) find(_ *http.Request, body []byte) (any, *problem) {
	var asked struct {
		Services []struct {
			Service registered `json:"service"`
			Rev     string     `json:"rev"`
		} `json:"services"`
	}
	if json.Unmarshal(body, &asked) != nil {
		return nil, badBody
	}
	type update struct {
		Index     int            `json:"index"`
		Rev       string         `json:"rev"`
		Instances []registration `json:"instances,omitempty"`
	}
	type failure struct {
		Indexes []int    `json:"indexes"`
		Error   *problem `json:"error"`
	}
	var found struct {
		Updated     []update  `json:"updated,omitempty"`
		NotModified []int     `json:"notModified,omitempty"`
		Failed      []failure `json:"failed,omitempty"`
	}
	for index, ask := range asked.Services {
		s := c.service(ask.Service.Name)
		switch {
		case s == nil || s.Environment != ask.Service.Environment || s.App != ask.Service.App:
			found.Failed = append(found.Failed, failure{[]int{index}, noService})
		case s.revision == ask.Rev:
			found.NotModified = append(found.NotModified, index)
		default:
			found.Updated = append(found.Updated, update{index, s.revision, s.instances})
		}
	}
	return map[string]any{"services": found}, nil
}

// register adds an instance to a service, or replaces the instance with its id.
func (c *serviceCenter) register(r *http.Request, body []byte) (any, *problem) {
	var asked struct {
		Instance registration `json:"instance"`
	}
	if json.Unmarshal(body, &asked) != nil {
		return nil, badBody
	}
	s := c.service(r.PathValue("service"))
	if s == nil {
		return nil, noService
	}
	if asked.Instance.ID == "" {
		asked.Instance.ID = rand.Text()
	}
	c.set(s, append(s.without(asked.Instance.ID), asked.Instance))
	return map[string]string{"instanceId": asked.Instance.ID}, nil
}

func (c *serviceCenter) unregister(r *http.Request, _ []byte) (any, *problem) {
	s := c.service(r.PathValue("service"))
	if s == nil {
		return nil, noInstance
	}
	rest := s.without(r.PathValue("instance"))
	if len(rest) == len(s.instances) {
		return nil, noInstance
	}
	c.set(s, rest)
	return nil, nil
}

// without returns the instances except the one with an id.
func (s *registered) without(id string) []registration {
	return slices.DeleteFunc(slices.Clone(s.instances), func(i registration) bool { return i.ID == id })
}
