package hostile

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
)

// withWatch has the output watch attacked.
func withWatch(*testing.T) setup { return setup{watch: true} }

// badReaders attack the watch of records in all ways at once: readers of everything that read
// nothing, others that read slowly, pages of one record from anywhere, and garbage.
func badReaders(t *testing.T, r *room) string {
	silent, slow := size(2000, 40), size(200, 10)
	length := size(45*time.Second, 2*time.Second) // in full longer than a message may take, 30 s
	var o outcomes
	churned := 0
	r.beside(t, func(ctx context.Context) error {
		conns, err := r.attackers(garblers)
		if err != nil {
			return err
		}
		defer conns.close()
		c, end := newCrowd(ctx), time.Now().Add(length)
		c.send(silent, func(ctx context.Context, i int) error { return r.readNothing(ctx, i, end) })
		c.send(slow, func(ctx context.Context, i int) error { return conns.readSlowly(ctx, i, end) })
		c.send(garblers, func(ctx context.Context, i int) error { return conns.askNonsense(ctx, i, end, &o) })
		c.send(1, func(ctx context.Context, _ int) error { return r.awaitReaders(ctx, silent+slow) })
		c.send(1, func(ctx context.Context, _ int) (err error) {
			churned, err = r.churn(ctx, length)
			return err
		})
		return c.wait()
	})
	return fmt.Sprintf("%d readers of everything that read nothing, %d slow ones, %d nonsensical requests, of which %d were rejected, %d changes",
		silent, slow, o.served.Load()+o.rejected.Load(), o.rejected.Load(), churned)
}

// awaitReaders waits until the program has had so many readers.
func (r *room) awaitReaders(ctx context.Context, n int) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for most := 0; most < n; {
		_, value, _ := bytes.Cut(probe.Get("http://"+r.server.admin+"/metrics"), []byte("\nisthmus_watch_readers "))
		now := 0
		_, _ = fmt.Sscan(string(value), &now)
		most = max(most, now)
		select {
		case <-ctx.Done():
			return fmt.Errorf("the program has had %d readers at once, not %d", most, n)
		case <-again.C:
		}
	}
	return nil
}

// readNothing watches everything on a connection of its own, and leaves all that comes in the
// windows: those of TCP, or of HTTP/2.
func (r *room) readNothing(ctx context.Context, reader int, end time.Time) error {
	conn, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	window := []uint32{1 << 10, 1 << 16, 1 << 30}[reader%3]
	opening := append(greeting(window), begin(1, r.method())...)
	if _, err := conn.Write(append(opening, message(1, r.everything("")[0])...)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(end)):
	}
	return nil
}

// readSlowly watches everything, and takes a message now and then.
func (c connections) readSlowly(ctx context.Context, reader int, end time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	again := time.NewTicker(300 * time.Millisecond)
	defer again.Stop()
	s, err := c.open(ctx, reader, watchList)
	if err == nil {
		err = s.SendMsg(marshal(&api.WatchListRequest{}))
	}
	for ; err == nil && ctx.Err() == nil; <-again.C {
		_, err = s.receive()
	}
	return unlessOver(ctx, err)
}

// askNonsense sends requests until the end, each on a stream of its own.
func (c connections) askNonsense(ctx context.Context, attacker int, end time.Time, o *outcomes) error {
	for random := chance(attacker); timeLeft(ctx, end); {
		method, text := nonsense(random)
		if err := o.note(rejection(c.ask(ctx, attacker, method, text))); err != nil {
			return err
		}
	}
	return nil
}

// ask returns how a call ends; a watch is left after a moment.
func (c connections) ask(ctx context.Context, attacker int, method string, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s, err := c.open(ctx, attacker, method)
	if err != nil {
		return err
	}
	_ = s.SendMsg(text)
	_ = s.CloseSend()
	for err == nil {
		_, err = s.receive()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// rejection replaces the codes that only this API has.
func rejection(err error) error {
	switch grpcstatus.Code(err) {
	case codes.NotFound, codes.FailedPrecondition:
		return grpcstatus.Error(codes.InvalidArgument, err.Error())
	default:
		return err
	}
}

// nonsense returns a request that is cheap to send.
func nonsense(random *rand.Rand) (method string, text []byte) {
	token := base64.RawURLEncoding.EncodeToString(noise(random, 100))
	if random.IntN(2) == 0 { // a place in other records
		token = base64.RawURLEncoding.EncodeToString(marshal(&api.Ref{Kind: "Endpoint", Source: "files", Name: fmt.Sprint(random.IntN(100))}))
	}
	filters := []*api.Filter{{}, {Kind: "Service"}, {Kind: "MergedEndpoint"}, {Source: "nobodys"}, {NamePrefix: token}}
	filter := filters[random.IntN(len(filters))]
	moment := &api.Moment{Epoch: random.Uint64N(2), Revision: random.Uint64()}
	requests := map[string][]byte{
		recordsAPI + "List":        marshal(&api.ListRequest{Filter: filter, PageBytes: 1, PageToken: token}),
		recordsAPI + "ListByOwner": marshal(&api.ListByOwnerRequest{Owner: &api.Ref{Kind: "MergedService", Name: token}, PageBytes: 1}),
		recordsAPI + "Get":         marshal(&api.GetRequest{Ref: &api.Ref{Kind: "Service", Source: "files", Name: token}}),
		watchList:                  marshal(&api.WatchListRequest{Filter: filter, Held: moment, NotOlderThan: moment}),
	}
	method = []string{recordsAPI + "List", recordsAPI + "ListByOwner", recordsAPI + "Get", watchList}[random.IntN(len(requests))]
	if text = requests[method]; random.IntN(3) == 0 {
		text = garbled(random, text)
	}
	return method, text
}

const (
	recordsAPI = "/isthmus.resource.v1alpha1.ResourceService/"
	watchList  = recordsAPI + "WatchList"
)
