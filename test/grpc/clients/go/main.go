// Command go is a gRPC client in Go. How it is used, the doc of package clients
// says.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	_ "google.golang.org/grpc/xds" // the resolver of xds:///
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// client is a channel for each target.
type client struct {
	deadline time.Duration
	targets  map[string]*grpc.ClientConn

	made    int
	pending sync.WaitGroup
	print   sync.Mutex
}

func run(arguments []string) error {
	interval, err := milliseconds(arguments[0])
	if err != nil {
		return err
	}
	c := &client{targets: map[string]*grpc.ClientConn{}}
	if c.deadline, err = milliseconds(arguments[1]); err != nil {
		return err
	}
	for _, target := range arguments[2:] {
		c.targets[target], err = grpc.NewClient("xds:///"+target, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
	}
	c.callUntilInputEnds(interval)
	c.pending.Wait()
	fmt.Printf("end\t%d\n", c.made)
	return nil
}

func milliseconds(text string) (time.Duration, error) {
	n, err := strconv.Atoi(text)
	return time.Duration(n) * time.Millisecond, err
}

func (c *client) callUntilInputEnds(interval time.Duration) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	due := time.NewTicker(interval)
	defer due.Stop()
	for {
		for target, conn := range c.targets {
			c.made++
			c.pending.Go(func() { c.call(target, conn) })
		}
		select {
		case <-due.C:
		case <-ended:
			return
		}
	}
}

// call makes one call and prints a line once it is answered.
func (c *client) call(target string, conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), c.deadline)
	defer cancel()
	began := time.Now()
	var header metadata.MD
	_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header))
	name, failure := strings.Join(header.Get("answered-by"), ","), ""
	if err != nil {
		name, failure = "", fmt.Sprintf("%s: %s", status.Code(err), status.Convert(err).Message())
	}
	took := time.Since(began).Microseconds()
	c.print.Lock()
	defer c.print.Unlock()
	fmt.Printf("%d\t%s\t%s\t%s\n", took, target, name, strings.Join(strings.Fields(failure), " "))
}
