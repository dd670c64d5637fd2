package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// Instance is one of a service, as the HTTP API takes it and lists it.
type Instance struct {
	Service   string `json:"-"`
	Group     string `json:"-"` // empty for DEFAULT_GROUP
	Namespace string `json:"-"` // empty for public
	IP        string
	Port      int
	Healthy   bool // as it is listed
	// Lasts is for how long the instance is listed without a beat; 30 s if it is 0. It
	// is unhealthy after half of that.
	Lasts time.Duration `json:"-"`
}

// DefaultGroup is the group of a service that names none.
const DefaultGroup = "DEFAULT_GROUP"

// Register registers an instance without a connection: it is there as long as it
// sends beats.
func (s *Server) Register(ctx context.Context, i Instance) error {
	_, err := s.call(ctx, http.MethodPost, "instance", i.values())
	return err
}

// Deregister takes an instance back.
func (s *Server) Deregister(ctx context.Context, i Instance) error {
	_, err := s.call(ctx, http.MethodDelete, "instance", i.values())
	return err
}

// Beat says that an instance is alive. One that was removed is there again.
func (s *Server) Beat(ctx context.Context, i Instance) error {
	name := cmp.Or(i.Group, DefaultGroup) + "@@" + i.Service
	beat, err := json.Marshal(map[string]any{"ip": i.IP, "port": i.Port, "serviceName": name, "cluster": "DEFAULT", "weight": 1})
	if err != nil {
		return err
	}
	values := i.values()
	values.Set("serviceName", name)
	values.Set("beat", string(beat))
	_, err = s.call(ctx, http.MethodPut, "instance/beat", values)
	return err
}

// Instances are those of the service that an instance is of, healthy or not.
func (s *Server) Instances(ctx context.Context, of Instance) ([]Instance, error) {
	page, err := s.call(ctx, http.MethodGet, "instance/list", of.values())
	if err != nil {
		return nil, err
	}
	var list struct{ Hosts []Instance }
	err = json.Unmarshal(page, &list)
	return list.Hosts, err
}

func (i Instance) values() url.Values {
	values := url.Values{"serviceName": {i.Service}, "groupName": {cmp.Or(i.Group, DefaultGroup)}}
	values.Set("namespaceId", cmp.Or(i.Namespace, "public"))
	if i.IP != "" {
		values.Set("ip", i.IP)
		values.Set("port", strconv.Itoa(i.Port))
	}
	if i.Lasts > 0 {
		values.Set("metadata", fmt.Sprintf(`{"preserved.heart.beat.timeout": "%d", "preserved.ip.delete.timeout": "%d"}`,
			i.Lasts.Milliseconds()/2, i.Lasts.Milliseconds()))
	}
	return values
}

func (s *Server) call(ctx context.Context, method, path string, values url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, until.Patience)
	defer cancel()
	address := fmt.Sprintf("http://%s/nacos/v1/ns/%s?%s", address(s.Port), path, values.Encode())
	request, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Close = true // a server that is killed and restarted leaves no connection behind
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s is answered by %s: %s", method, path, answer.Status, page)
	}
	return page, err
}
