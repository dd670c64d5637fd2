package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/isthmus-mesh/isthmus/internal/bootstrap"
)

const noEnvoy = "\nThere is no envoy on the PATH, so the tour has no step with an Envoy."

// envoy is a running Envoy. It listens on loopback, at the port of the second registry's
// service.
type envoy struct {
	process *exec.Cmd
	log     string        // file
	ended   chan struct{} // closed once the process has ended
}

// startEnvoy starts an Envoy with the bootstrap that isthmus bootstrap envoy prints.
func startEnvoy(program, dir, xds string, port int) (*envoy, error) {
	text, err := bootstrap.Envoy{
		Node: bootstrap.Node{
			Node: "demo-envoy", Namespace: namespace, IPs: []string{"127.0.0.1"},
			Interception: "NONE", Outbound: []string{strconv.Itoa(port)},
		},
		Server: bootstrap.Server{Addresses: []string{xds}}, Keepalive: 10 * time.Second,
	}.YAML()
	if err != nil {
		return nil, fmt.Errorf("making the bootstrap: %w", err)
	}
	file := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("writing the bootstrap: %w", err)
	}
	e := &envoy{log: filepath.Join(dir, "envoy.log"), ended: make(chan struct{})}
	e.process = exec.Command(program, "-c", file, "--disable-hot-restart", "--concurrency", "1", "--log-level", "warn", "--log-path", e.log) //nolint:gosec,noctx // close ends it
	if err := e.process.Start(); err != nil {
		return nil, fmt.Errorf("starting envoy: %w", err)
	}
	go func() {
		defer close(e.ended)
		_ = e.process.Wait() // how it ended is in its log
	}()
	return e, nil
}

// trouble returns an error once the process has ended, with the end of its log.
func (e *envoy) trouble() error {
	select {
	case <-e.ended:
	default:
		return nil
	}
	text, _ := os.ReadFile(e.log) // without a log the error says less
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return hopelessError{fmt.Errorf("envoy has ended: %s", lines[len(lines)-1])}
}

func (e *envoy) close() {
	_ = e.process.Process.Kill() // it may have ended before
	<-e.ended
}

// envoyStep is the last step of the tour.
func (t *tour) envoyStep() step {
	s := t.second.service
	return step{
		"an Envoy",
		"An Envoy starts with the configuration of 'isthmus bootstrap envoy', as a sidecar on loopback.\n" +
			fmt.Sprintf("Watch: calls of %s through it reach the instances of both registries.", s.host()),
		t.throughEnvoy,
	}
}

// throughEnvoy calls the service through an Envoy until each of its instances has answered.
func (t *tour) throughEnvoy(ctx context.Context) (_ observed, err error) {
	unharmed, begun, s := t.unharmed(), time.Now(), t.second
	port := t.registry.port(s.service, nil)
	if t.envoy, err = startEnvoy(t.envoyProgram, t.dir, t.control.xds(), port); err != nil {
		return observed{}, err
	}
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithAuthority(s.service.host()), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return observed{}, err
	}
	defer conn.Close()
	health, answered, first := healthpb.NewHealthClient(conn), map[string]bool{}, time.Time{}
	err = await(ctx, func() error {
		name, err := call(ctx, health)
		if err != nil {
			return errors.Join(t.envoy.trouble(), fmt.Errorf("a call through Envoy: %w", err))
		}
		if len(answered) == 0 {
			first = time.Now()
		}
		answered[name] = true
		var silent []string
		for _, b := range t.fleet.running {
			if serviceOf(b) == s.service.name && !answered[b.name] {
				silent = append(silent, b.name)
			}
		}
		return errors.Join(unharmed(), missing("no answer through Envoy from", silent))
	})
	return observed{first.Sub(begun), fmt.Sprintf("the first answer through Envoy at %s; each of the %d instances has answered", at, len(answered))}, err
}
