package client_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/client"
)

// A program that acts on every change of the merged services of a namespace.
func Example() {
	conn, err := grpc.NewClient("127.0.0.1:15020",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	replica := client.New(conn, &resourcev1alpha1.Filter{Kind: "MergedService", Namespace: "shop"})
	go func() {
		log.Print(replica.Run(ctx))
		cancel()
	}()
	var last *client.View
	for ctx.Err() == nil {
		changed := replica.Changed() // before the view, so that no change is missed
		if view := replica.View(); view != nil {
			for change := range view.Since(last) {
				fmt.Println(change.After.GetRef().GetName())
			}
			last = view
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}
