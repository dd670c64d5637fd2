package scale

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/cli"
	"github.com/isthmus-mesh/isthmus/test/testkit/product"
)

var (
	streams   = flag.Int("streams", 500, "clients, each with a connection of its own")
	services  = flag.Int("services", 200, "services in the registry, each in a file of its own")
	endpoints = flag.Int("endpoints", 50, "endpoints of each service")
	changes   = flag.Int("changes", 60, "changes to take the median of")
	rounds    = flag.Int("rounds", 3, "connects and resumes of all clients to take the median of")
	churning  = flag.Duration("churn", time.Minute, "how long clients come and go in the benchmark of that name")
	against   = flag.String("against", "", "also measure this program, in turns with the other")

	meshServices  = flag.Int("mesh-services", 28_000, "services of a mesh of heavy-tailed sizes")
	meshEndpoints = flag.Int("mesh-endpoints", 470_000, "endpoints of all its services together")
	meshLargest   = flag.Int("mesh-largest", 20_000, "endpoints of its largest service")

	binary  = flag.String("program", "", "measure this program instead of building it")
	profile = flag.String("profile", "", "serve pprof of the server on this address, such as 127.0.0.1:6060")
)

// workDir is where the program is built to; it is removed at the end.
var workDir string

// profiledServer names the variable that makes the test binary the server: it
// holds the address for pprof, which the program itself does not serve.
const profiledServer = "ISTHMUS_SCALE_PROFILE"

func TestMain(m *testing.M) {
	if addr := os.Getenv(profiledServer); addr != "" {
		os.Exit(serveProfiled(addr))
	}
	if size := os.Getenv(bareSize); size != "" {
		os.Exit(serveBare(size))
	}
	flag.Parse()
	// Each benchmark repeats by itself what it takes the median of.
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.benchtime" })
	if !chosen {
		if err := flag.Set("test.benchtime", "1x"); err != nil {
			panic(err) // the testing package has that flag
		}
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "isthmus-scale-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	workDir = dir
	return m.Run()
}

// serveProfiled is the program with pprof beside it.
func serveProfiled(addr string) int {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	s := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { fmt.Fprintln(os.Stderr, s.ListenAndServe()) }()
	defer s.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return cli.Main(ctx, "profiled", os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// program returns the path of the program that is measured.
func program(tb testing.TB) string {
	tb.Helper()
	path, err := built()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// built builds the program once.
var built = sync.OnceValues(func() (string, error) {
	switch {
	case *profile != "":
		return os.Executable()
	case *binary != "":
		return *binary, nil
	}
	path := filepath.Join(workDir, "isthmus")
	return path, product.Build(filepath.Join("..", ".."), path)
})
