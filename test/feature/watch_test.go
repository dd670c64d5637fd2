package feature_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/client"
	"github.com/isthmus-mesh/isthmus/config"
)

// watched is a configuration whose output watch the replicas of a test read.
func watched(sources ...entry) string {
	return strings.Replace(configOf(sources...), "outputs: {", fmt.Sprintf("outputs: {watch: {listen: %q}, ", loopback), 1)
}

// startWatched starts an Isthmus that follows a file, and returns a connection to its watch.
func startWatched(t *testing.T, file string, markers *registry) *grpc.ClientConn {
	t.Helper()
	loaded, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var address string
	i := launch(t, loaded, []*registry{markers}, func(a *app.App) {
		a.Reload(app.Reloading{File: file, Now: make(chan os.Signal), Log: func(config.Log) {}})
		address = a.Addr("watch").String()
	})
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	i.clients = append(i.clients, func() { _ = conn.Close() })
	return conn
}

// replicaOf keeps a replica until the test ends.
func replicaOf(t *testing.T, conn *grpc.ClientConn, kind string) *client.Replica {
	t.Helper()
	replica := client.New(conn, &api.Filter{Kind: kind})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = replica.Run(t.Context())
	}()
	t.Cleanup(func() { <-ended })
	return replica
}

// awaitReplica waits until a replica has exactly these names, of these sources.
func awaitReplica(t *testing.T, replica *client.Replica, names, sources []string) {
	t.Helper()
	await(t, fmt.Sprintf("the replica to have %q of %q", names, sources), func() error {
		view := replica.View()
		if view == nil {
			return errors.New("it is not known yet")
		}
		var held, of []string
		for record := range view.All() {
			held = append(held, record.GetRef().GetName())
		}
		for source := range replica.Sources() {
			if of = append(of, source.GetName()); !source.GetPrimed() {
				return fmt.Errorf("the source %s is not primed: %s", source.GetName(), source.GetReason())
			}
		}
		if !slices.Equal(held, names) || !slices.Equal(of, sources) {
			return fmt.Errorf("it has %q of %q", held, of)
		}
		return nil
	})
}

// A replica of the merged services follows manifests, and sources that come and go.
func TestReplicaFollowsTheSources(t *testing.T) {
	t.Parallel()
	first, second := newRegistry(t, "first"), newRegistry(t, "second")
	first.Write("shop.yaml", at(reviews, "192.0.2.1"))
	second.Write("shop.yaml", at(ratings, "192.0.2.2"))
	one, other := entry{name: "first", from: first}, entry{name: "second", from: second}
	file := filepath.Join(t.TempDir(), "isthmus.yaml")
	place(t, file, watched(one))
	conn := startWatched(t, file, first)
	services, endpoints := replicaOf(t, conn, "MergedService"), replicaOf(t, conn, "Endpoint")
	awaitReplica(t, services, []string{reviews}, []string{"first"})

	place(t, file, watched(one, other))
	awaitReplica(t, services, []string{ratings, reviews}, []string{"first", "second"})
	first.Write("shop.yaml", at(reviews, "192.0.2.1"), at("details.example.com", "192.0.2.3"))
	awaitReplica(t, services, []string{"details.example.com", ratings, reviews}, []string{"first", "second"})
	place(t, file, watched(one))
	awaitReplica(t, services, []string{"details.example.com", reviews}, []string{"first"})
	await(t, "the endpoints of two services", func() error {
		if view := endpoints.View(); view == nil || view.Len() != 2 {
			return fmt.Errorf("the replica has %v", view)
		}
		return nil
	})
}
