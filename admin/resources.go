package admin

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/isthmus-mesh/isthmus/push"
)

// Resources of a page.
const (
	resourcesOfPage = 1000
	mostResources   = 5000
)

// contentBytes bounds the content of a page, but for its first resource.
const contentBytes = 4 << 20

// stream is a subscriber, with the output that serves it.
type stream struct {
	output string
	engine *push.Engine
	*push.Subscriber
}

// place is the begin of a page of resources: after a resource of a stream. Streams are
// identified by their start time, so that a page skips a stream that has ended.
type place struct {
	Output, Protocol string
	Since            time.Time
	Type, Name       string
}

// compare orders a type of a stream against the type at the place.
func (p place) compare(s stream, typeName string) int {
	return cmp.Or(cmp.Compare(s.output, p.Output), s.Info.Since.Compare(p.Since),
		cmp.Compare(s.Info.Protocol, p.Protocol), cmp.Compare(typeName, p.Type))
}

// holdings shows the resources that clients hold.
type holdings struct{ parts Parts }

// resources shows a client's resources, a page at a time.
func (h holdings) resources(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	limit, from, err := paging(r)
	if err != nil {
		fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	streams := h.streams(id)
	if len(streams) == 0 {
		fail(w, http.StatusNotFound, "no client %q is connected; 'isthmus clients' lists the connected ones", id)
		return
	}
	content := r.URL.Query().Has("content")
	page, now := ResourcePage{Resources: []ClientResource{}}, time.Now()
	for _, one := range streams {
		for _, typeName := range one.TypeNames() {
			if want := r.URL.Query().Get("type"); want != "" && want != typeName {
				continue
			}
			before := len(page.Resources)
			page.fill(one, typeName, from, limit, now)
			if content {
				page.read(one, before)
			}
		}
	}
	reply(w, h.parts.Log, page)
}

// streams returns the streams of a client, in the order of a page.
func (h holdings) streams(id string) (list []stream) {
	for _, o := range h.parts.served() {
		for _, subscriber := range o.Engine.Streams(id) {
			list = append(list, stream{o.name, o.Engine, subscriber})
		}
	}
	return list
}

// fill adds a stream's resources of a type, as long as there is room.
func (p *ResourcePage) fill(from stream, typeName string, begin place, limit int, now time.Time) {
	behind := ""
	switch at := begin.compare(from, typeName); {
	case at < 0 || p.Next != "":
		return
	case at == 0:
		behind = begin.Name
	}
	if len(p.Resources) == limit {
		p.Next = p.end()
		return
	}
	list, next := from.Resources(typeName, behind, limit-len(p.Resources))
	for _, status := range list {
		p.Resources = append(p.Resources, ClientResource{
			Output: from.output, Protocol: from.Info.Protocol, ConnectedSince: from.Info.Since, Type: typeName, Name: status.Name,
			Version: status.Version, State: string(status.State), Reason: status.Reason, Age: age(now, status.Since), Pending: status.Pending,
		})
	}
	if next != "" {
		p.Next = place{from.output, from.Info.Protocol, from.Info.Since, typeName, next}.token()
	}
}

// read adds the content of a stream's resources, from one on. The page ends where it would
// become too large.
func (p *ResourcePage) read(from stream, first int) {
	client := from.Client()
	for i := first; i < len(p.Resources); i++ {
		r := &p.Resources[i]
		newest := from.engine.Read(client, r.Type, r.Name)
		if newest == nil || newest.Framed {
			continue
		}
		r.ContentVersion, r.Content = newest.Version.String(), plainContent(newest.Body)
		if p.content += len(r.Content); p.content > contentBytes && i > 0 && i+1 < len(p.Resources) {
			p.Resources = p.Resources[:i+1]
			p.Next = p.end()
		}
	}
}

// plainContent returns a message of the protocol as JSON, or as the base64 text of its bytes
// if its type is unknown here.
func plainContent(body []byte) json.RawMessage {
	var packed anypb.Any
	if proto.Unmarshal(body, &packed) == nil {
		if text, err := protojson.Marshal(&packed); err == nil {
			return text
		}
	}
	text, _ := json.Marshal(body) // of bytes, which does not fail
	return text
}

// end returns the place after the last resource.
func (p *ResourcePage) end() string {
	last := p.Resources[len(p.Resources)-1]
	return place{last.Output, last.Protocol, last.ConnectedSince, last.Type, last.Name}.token()
}

func (p place) token() string {
	text, _ := json.Marshal(p) // of strings and a time, which does not fail
	return base64.RawURLEncoding.EncodeToString(text)
}

// paging parses the page parameters of a request.
func paging(r *http.Request) (limit int, from place, err error) {
	limit = resourcesOfPage
	if text := r.URL.Query().Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > mostResources {
			return 0, from, fmt.Errorf("limit: %q is not a number from 1 to %d", text, mostResources)
		}
	}
	text, err := base64.RawURLEncoding.DecodeString(r.URL.Query().Get("from"))
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &from)
	}
	if err != nil {
		return 0, from, errors.New("from: not a page token; use the value of next from the previous page")
	}
	return limit, from, nil
}
