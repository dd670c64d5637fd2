package xdsclient

import (
	"context"
	"fmt"
	"maps"
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// dialect is a variant of the protocol.
type dialect interface {
	// open begins a stream of one type, or of all if that is empty.
	open(ctx context.Context, conn grpc.ClientConnInterface, only string) (wire, error)
	// request says how a subscription changed, and answers a response if there
	// is one to answer. The topic has taken in the change already.
	request(k *topic, add, drop []string, a *answer) proto.Message
	delta() bool
}

// wire is one stream of a dialect.
type wire interface {
	send(m proto.Message) error
	receive() (response, error)
}

// answer is a client's word on a response.
type answer struct {
	response
	reason string // of a NACK; empty accepts
}

func (a *answer) nonce() string {
	if a == nil {
		return ""
	}
	return a.response.nonce
}

func (a *answer) errorDetail() *status.Status {
	if a == nil || a.reason == "" {
		return nil
	}
	return &status.Status{Code: 3, Message: a.reason}
}

type sotwDialect struct{}

func (sotwDialect) delta() bool { return false }

func (sotwDialect) open(ctx context.Context, conn grpc.ClientConnInterface, only string) (wire, error) {
	if only != "" {
		return openSotW(ctx, conn, only)
	}
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	return sotwWire{stream}, err
}

// request names all that the client wants. One that answers nothing carries
// the nonce of the response answered last.
func (sotwDialect) request(k *topic, _, _ []string, a *answer) proto.Message {
	m := &discoveryv3.DiscoveryRequest{
		TypeUrl: k.url, VersionInfo: k.acked, ResponseNonce: k.nonce, ErrorDetail: a.errorDetail(),
		ResourceNames: slices.Sorted(maps.Keys(k.names)),
	}
	if a != nil {
		m.ResponseNonce = a.nonce()
	}
	if k.star && k.named {
		m.ResourceNames = append(m.ResourceNames, "*")
	}
	return m
}

type sotwWire struct {
	stream streamOf[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]
}

func (w sotwWire) send(m proto.Message) error {
	return w.stream.Send(m.(*discoveryv3.DiscoveryRequest))
}

func (w sotwWire) receive() (response, error) {
	m, err := w.stream.Recv()
	if err != nil {
		return response{}, err
	}
	r := response{
		typeURL: m.GetTypeUrl(), nonce: m.GetNonce(), version: m.GetVersionInfo(),
		controlPlane: m.GetControlPlane().GetIdentifier(), full: isWhole(m.GetTypeUrl()),
	}
	for _, body := range m.GetResources() {
		res, err := newResource(m.GetTypeUrl(), body)
		if err != nil {
			return response{}, err
		}
		r.resources = append(r.resources, res)
	}
	return r, nil
}

type deltaDialect struct{}

func (deltaDialect) delta() bool { return true }

func (deltaDialect) open(ctx context.Context, conn grpc.ClientConnInterface, only string) (wire, error) {
	if only != "" {
		return openDelta(ctx, conn, only)
	}
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	return deltaWire{stream}, err
}

// request says what changed. The first of a type says what the client holds.
func (deltaDialect) request(k *topic, add, drop []string, a *answer) proto.Message {
	m := &discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: k.url, ResourceNamesSubscribe: add, ResourceNamesUnsubscribe: drop,
		ResponseNonce: a.nonce(), ErrorDetail: a.errorDetail(),
	}
	if !k.asked {
		m.InitialResourceVersions = map[string]string{}
		for name, res := range k.held {
			m.InitialResourceVersions[name] = res.Version
		}
	}
	return m
}

type deltaWire struct {
	stream streamOf[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
}

func (w deltaWire) send(m proto.Message) error {
	return w.stream.Send(m.(*discoveryv3.DeltaDiscoveryRequest))
}

func (w deltaWire) receive() (response, error) {
	m, err := w.stream.Recv()
	if err != nil {
		return response{}, err
	}
	r := response{
		typeURL: m.GetTypeUrl(), nonce: m.GetNonce(), version: m.GetSystemVersionInfo(),
		controlPlane: m.GetControlPlane().GetIdentifier(), removed: m.GetRemovedResources(),
	}
	for _, item := range m.GetResources() {
		res, err := newResource(m.GetTypeUrl(), item.GetResource())
		switch {
		case err != nil:
			return response{}, err
		case item.GetVersion() == "":
			return response{}, fmt.Errorf("%s %s has no version", short(m.GetTypeUrl()), item.GetName())
		case item.GetName() != res.Name:
			return response{}, fmt.Errorf("the %s named %q holds %q", short(m.GetTypeUrl()), item.GetName(), res.Name)
		}
		res.Version = item.GetVersion()
		r.resources = append(r.resources, res)
	}
	return r, nil
}
