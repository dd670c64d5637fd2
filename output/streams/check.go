package streams

import (
	"cmp"
	"context"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// showsNothing reports whether the client of a stream shows neither a certificate nor a token. A
// listener that demands a proof serves it health checks alone: load balancers and probes have no
// proof. A client with an invalid proof is not served them.
func showsNothing(ctx context.Context) bool {
	other, ok := peer.FromContext(ctx)
	if !ok || len(metadata.ValueFromIncomingContext(ctx, "authorization")) > 0 {
		return false
	}
	on, ok := other.AuthInfo.(carried)
	if !ok {
		return false
	}
	chains, _ := shownBy(on.AuthInfo)
	return len(chains) == 0
}

// checkSeat returns the place of a health check without a proof.
func (l Limits) checkSeat(who Identity) seat {
	return seat{
		key: "unproven " + cmp.Or(who.Address, "this machine"), most: l.Checks,
		full: "%s has %d health checks under way, which is all one address may have without a proof; send the request of each at once, or prove an identity",
	}
}
