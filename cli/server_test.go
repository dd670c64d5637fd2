package cli_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// server is an isthmus serve that runs beside a script.
type server struct {
	xds, admin, watch string
	room              []string // the size and the folder of a file system of its own, if it has one
	process           *exec.Cmd
	log               strings.Builder // complete once ended is closed
	ended             chan struct{}
	err               error // of the process, likewise
}

var serving = regexp.MustCompile(`msg=serving xds=(\S+)(?: watch=(\S+))? admin=(\S+)`)

// start returns once the server says where it serves. Variables are added to the
// environment.
func (s *server) start(config string, variables ...string) error {
	s.log.Reset()
	s.process, s.ended = s.command(config), make(chan struct{})
	s.process.Env = append(os.Environ(), variables...)
	log, err := s.process.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
		return err
	}
	found := make(chan []string, 1)
	go s.follow(log, found)
	select {
	case at := <-found:
		s.xds, s.watch, s.admin = at[1], at[2], "http://"+at[3]
		return nil
	case <-s.ended:
		return fmt.Errorf("serving: %w\n%s", s.err, s.log.String())
	case <-time.After(until.Patience):
		return errors.New("it does not say where it serves")
	}
}

func (s *server) command(config string) *exec.Cmd {
	if s.room == nil {
		return exec.Command("isthmus", "serve", "--config", config) //nolint:noctx // it ends by a signal
	}
	const mounted = `mount -t tmpfs -o size="$1" none "$2" && exec isthmus serve --config "$3"`
	return exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted, "sh", s.room[0], s.room[1], config) //nolint:noctx // likewise
}

// follow keeps what the server logs, to its end.
func (s *server) follow(log io.Reader, found chan<- []string) {
	defer close(s.ended)
	for lines := bufio.NewScanner(log); lines.Scan(); {
		s.log.WriteString(lines.Text() + "\n")
		if at := serving.FindStringSubmatch(lines.Text()); at != nil {
			found <- at
		}
	}
	s.err = s.process.Wait()
}

// await asks the admin API until the answer says what is wanted.
func (s *server) await(path, want string) error {
	return s.awaits(path, func(text string) error {
		if !strings.Contains(text, want) {
			return fmt.Errorf("it does not say %q", want)
		}
		return nil
	})
}

var notLive = regexp.MustCompile(`(?m)^isthmus_source_up{.*} 0$`)

// awaitLive waits until every source is shown as live. The server is ready as soon as
// what they have listed is served, which may be a moment earlier.
func (s *server) awaitLive() error {
	return s.awaits("/metrics", func(text string) error {
		if is := notLive.FindString(text); is != "" {
			return errors.New("it says " + is)
		}
		return nil
	})
}

// awaits asks the admin API until there is nothing wrong with the answer.
func (s *server) awaits(path string, wrong func(text string) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), until.Patience)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		text, err := read(ctx, s.admin+path)
		if err == nil {
			err = wrong(text)
		}
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w\n%s", path, err, text)
		}
	}
}

func read(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	request.Close = true // leaves no goroutine behind
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// terminate asks the server to end, which it must do in good order.
func (s *server) terminate(log string) error {
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.ended:
	case <-time.After(until.Patience):
		return errors.New("it does not end")
	}
	return errors.Join(s.err, os.WriteFile(log, []byte(s.log.String()), 0o600))
}

func (s *server) kill() {
	_ = s.process.Process.Kill() // it may have ended before
	<-s.ended
}

// answerClusters opens a stream as Envoy does, and accepts the clusters, or
// rejects them for a reason. It accepts those that follow, until it is hung up.
func answerClusters(xds, id, reason string, said ...string) (hangUp func(), err error) {
	answer, hangUp, err := askForClusters(xds, id, reason, said...)
	if err != nil {
		return hangUp, err
	}
	return hangUp, answer()
}

// askForClusters opens a stream as Envoy does, and reads the first clusters. It answers
// when answer is called, as answerClusters does.
func askForClusters(xds, id, reason string, said ...string) (answer func() error, hangUp func(), err error) {
	conn, err := grpc.NewClient(xds, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var answering sync.WaitGroup
	hangUp = func() { cancel(); _ = conn.Close(); answering.Wait() }
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return nil, hangUp, err
	}
	fields := map[string]any{"NAMESPACE": "shop"}
	for _, text := range said {
		field, value, _ := strings.Cut(text, "=")
		fields[field] = value
	}
	metadata, err := structpb.NewStruct(fields)
	if err != nil {
		return nil, hangUp, err
	}
	request := &discoveryv3.DiscoveryRequest{
		Node: &corev3.Node{Id: id, Metadata: metadata}, TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster",
	}
	if err := stream.Send(request); err != nil {
		return nil, hangUp, err
	}
	response, err := stream.Recv()
	if err != nil {
		return nil, hangUp, err
	}
	request.VersionInfo, request.ResponseNonce = response.GetVersionInfo(), response.GetNonce()
	if reason != "" {
		request.VersionInfo, request.ErrorDetail = "", &status.Status{Message: reason}
	}
	return func() error {
		if err := stream.Send(request); err != nil {
			return err
		}
		answering.Go(func() { acceptAll(stream) })
		return nil
	}, hangUp, nil
}

// acceptAll ACKs each response until the stream ends.
func acceptAll(stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient) {
	for response, err := stream.Recv(); err == nil; response, err = stream.Recv() {
		_ = stream.Send(&discoveryv3.DiscoveryRequest{
			TypeUrl: response.GetTypeUrl(), VersionInfo: response.GetVersionInfo(), ResponseNonce: response.GetNonce(),
		})
	}
}
