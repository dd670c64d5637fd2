package streams_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/test/testkit/unproven"
)

// checked is a listener that demands a proof, and has health.
type checked struct {
	*testing.T
	*streams.Server
	border unproven.Border
	memory *bufconn.Listener
}

// distant gives connections an address.
type distant struct{ net.Listener }

type distantConn struct{ net.Conn }

func (d distant) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	return distantConn{conn}, err
}

func (distantConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// withHealth runs a test with the time of its own.
func withHealth(t *testing.T, limits streams.Limits, test func(s *checked)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &checked{T: t, border: unproven.NewBorder(t), memory: bufconn.Listen(1 << 20)}
		s.Server = streams.New(nil, streams.Options{TLS: s.border.TLS, Identity: s.border.Verifier}, limits, "")
		healthv1.RegisterHealthServer(s, health.NewServer())
		served := make(chan error, 1)
		go func() { served <- s.Serve(distant{s.memory}) }()
		test(s)
		s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// connect returns a connection of a client without a proof.
func (s *checked) connect() *grpc.ClientConn {
	s.Helper()
	conn, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(s.border.Credentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return s.memory.Dial() }))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	return conn
}

// check asks for the health.
func (s *checked) check(conn *grpc.ClientConn) error {
	s.Helper()
	answer, err := healthv1.NewHealthClient(conn).Check(s.Context(), &healthv1.HealthCheckRequest{})
	if err == nil && answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		return fmt.Errorf("the health is %v", answer)
	}
	return err
}

// A client without a proof may ask for the health. Checks without a request are few and end soon.
func TestSlowUnprovenHealthChecksAreBounded(t *testing.T) {
	t.Parallel()
	withHealth(t, streams.Limits{}, func(s *checked) {
		const slow = 20
		conn, ended := s.connect(), make(chan error, slow)
		for range slow {
			go func() {
				stream, err := conn.NewStream(s.Context(), &grpc.StreamDesc{}, healthv1.Health_Check_FullMethodName)
				if err == nil {
					err = stream.RecvMsg(&healthv1.HealthCheckResponse{})
				}
				ended <- err
			}()
		}
		begin := time.Now()
		for range slow - 4 {
			if err := <-ended; grpcstatus.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "192.0.2.1 has 4 health checks under way") {
				s.Errorf("got %v", err)
			}
		}
		if waited := time.Since(begin); waited != 0 {
			s.Errorf("the others ended after %s", waited)
		}
		for range 4 {
			if err := <-ended; grpcstatus.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "no request came within 5s") {
				s.Errorf("got %v", err)
			}
		}
		if waited := time.Since(begin); waited != 5*time.Second {
			s.Errorf("the last ended after %s", waited)
		}
		if counts := unproven.Counts(s); counts["streams"] != slow-4 || counts["silent"] != 4 {
			s.Errorf("counted are %v", counts)
		}
		if err := s.check(conn); err != nil {
			s.Errorf("a check afterwards: %v", err)
		}
	})
}

// Health checks give an unproven client no more connections than silence does. A connection with checks
// may be as old as its client likes.
func TestUnprovenClientsWithHealthChecksHaveFewConnections(t *testing.T) {
	t.Parallel()
	withHealth(t, streams.Limits{NewConnections: 2}, func(s *checked) {
		first, second := s.connect(), s.connect()
		for range 3 {
			for _, conn := range []*grpc.ClientConn{first, second} {
				if err := s.check(conn); err != nil {
					s.Error(err)
				}
			}
			time.Sleep(30 * time.Second)
		}
		third := s.connect()
		if err := s.check(third); grpcstatus.Code(err) != codes.Unavailable {
			s.Errorf("a third connection: %v", err)
		}
		_ = first.Close()
		synctest.Wait()
		if counts := unproven.Counts(s); counts["connections"] == 0 || counts["handshake"] != 0 {
			s.Errorf("counted are %v", counts)
		}
		if err := s.check(s.connect()); err != nil {
			s.Errorf("a connection afterwards: %v", err)
		}
	})
}
