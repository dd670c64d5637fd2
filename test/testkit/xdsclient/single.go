package xdsclient

import (
	"context"

	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// streamOf is a stream of any discovery service: all have the same messages.
type streamOf[Request, Response any] interface {
	Send(m *Request) error
	Recv() (*Response, error)
}

// openSotW opens a stream of the service of one type.
func openSotW(ctx context.Context, conn grpc.ClientConnInterface, typeURL string) (w sotwWire, err error) {
	switch typeURL {
	case CDS:
		w.stream, err = clusterservice.NewClusterDiscoveryServiceClient(conn).StreamClusters(ctx)
	case EDS:
		w.stream, err = endpointservice.NewEndpointDiscoveryServiceClient(conn).StreamEndpoints(ctx)
	default:
		err = noService(typeURL)
	}
	return w, err
}

// openDelta is openSotW for the other variant.
func openDelta(ctx context.Context, conn grpc.ClientConnInterface, typeURL string) (w deltaWire, err error) {
	switch typeURL {
	case CDS:
		w.stream, err = clusterservice.NewClusterDiscoveryServiceClient(conn).DeltaClusters(ctx)
	case EDS:
		w.stream, err = endpointservice.NewEndpointDiscoveryServiceClient(conn).DeltaEndpoints(ctx)
	default:
		err = noService(typeURL)
	}
	return w, err
}

func noService(typeURL string) error {
	return status.Errorf(codes.Unimplemented, "the client knows no service of %s alone", short(typeURL))
}
