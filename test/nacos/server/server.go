package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/isthmus-mesh/isthmus/test/rig/process"
)

// Server is a Nacos on loopback. What is in [process.Process] belongs to one
// goroutine, its HTTP API to any.
type Server struct {
	*process.Process
	database string // its folder

	// Port is that of the HTTP API. Those of gRPC are 1000 and 1001 above it, that of
	// raft is 1000 below.
	Port int
	// MCP is where it serves MCP and MCP-over-xDS.
	MCP string
}

// New describes a server that is not started yet, with its data and its log in a
// folder. Two servers in one namespace need ports that are ten apart.
func New(setup, dir string, port int) *Server {
	mcp := port + 10000
	lib := filepath.Join(setup, "target", "lib")
	arguments := []string{
		// Small: several start at a time, on two processors.
		"-Xms64m", "-Xmx192m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-XX:ReservedCodeCacheSize=64m", "-XX:MaxMetaspaceSize=192m", "-XX:-UsePerfData",
		"-Dnacos.home=" + dir, "-Duser.home=" + dir, "-Djava.io.tmpdir=" + dir,
		"-Dnacos.standalone=true", "-Dnacos.core.auth.enabled=false",
		"-Dnacos.extension.naming.istio.enabled=true",
		"-Dnacos.istio.mcp.server.enabled=true", fmt.Sprintf("-Dnacos.istio.mcp.server.port=%d", mcp),
		fmt.Sprintf("-Dserver.port=%d", port), "-Dserver.address=127.0.0.1", "-Dnacos.server.ip=127.0.0.1",
		"-Dserver.servlet.context-path=/nacos", "-Dlogging.level.root=warn",
		// Of the two versions of Hessian that it brings this one has to come first.
		"-classpath", filepath.Join(setup, "target", "classes") + ":" + filepath.Join(lib, "hessian-4.0.63.jar") + ":" + lib + "/*",
		"Server",
	}
	return &Server{Process: process.New(dir, "nacos", "java", arguments...), database: filepath.Join(dir, "data", "derby-data"), Port: port, MCP: address(mcp)}
}

// Run starts it, again if it was killed, and waits until it takes registrations and
// serves MCP. It knows no instance that was registered before. If it ends instead, it is left without a
// database: with a half created one it would never start.
func (s *Server) Run(ctx context.Context) error {
	err := s.Start(ctx, func(ctx context.Context) error {
		for _, a := range []string{s.MCP, address(s.Port + 1000)} {
			if err := dial(ctx, a); err != nil {
				return err
			}
		}
		_, err := s.Instances(ctx, Instance{Service: "none"})
		return err
	})
	if err != nil {
		err = errors.Join(err, os.RemoveAll(s.database))
	}
	return err
}

func dial(ctx context.Context, address string) error {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
