package feature_test

import (
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/calls"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

func TestClientThatComesBeforeItsServiceGetsItWhenItAppears(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	isthmus := start(t, files)
	client := dial(t, isthmus, reviews+":80", "shop")
	await(t, "an empty answer", func() error { return isthmus.acked(client, xdsclient.LDS, 0) })
	files.Write("shop.yaml", service{Host: reviews, Selector: "{app: reviews}"})
	files.Write("one.yaml", workload{Name: "one", Spec: b[0].Endpoint("labels: {app: reviews}")})
	client.AwaitAnswers("one")
	files.Write("two.yaml", workload{Name: "two", Spec: b[1].Endpoint("labels: {app: reviews}")})
	client.AwaitAnswers("one", "two")
}

func TestMovingADocumentBetweenFilesChangesNothing(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	moving := service{Host: reviews, Endpoints: endpoints(b...)}
	staying := service{Host: ratings, Endpoints: endpoints(b[0])}
	files.Write("m.yaml", staying, moving)
	isthmus := start(t, files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one", "two")
	calls := client.KeepCalling()
	isthmus.Settle()
	before := isthmus.sent(client)

	steps := []struct {
		name string
		move func()
	}{
		{"copied to a later file and then removed", func() {
			files.Write("z.yaml", moving)
			isthmus.AwaitRejected("files", "ServiceEntry shop/reviews at z.yaml:1: ")
			files.Write("m.yaml", staying)
			isthmus.AwaitRejected("files")
		}},
		{"copied to an earlier file and then removed", func() {
			files.Write("a.yaml", moving)
			isthmus.AwaitRejected("files", "ServiceEntry shop/reviews at a.yaml:1: ")
			files.Remove("z.yaml")
			isthmus.AwaitRejected("files")
		}},
		{"file renamed", func() { files.Move("a.yaml", "b.yaml") }},
		{"file moved into a new folder", func() {
			files.Write("folder/.keep")
			files.Move("b.yaml", "folder/b.yaml")
		}},
		{"folder renamed", func() { files.Move("folder", "another") }},
		{"file replaced by the same", func() { files.Write("another/b.yaml", moving) }},
		{"endpoints in another order", func() {
			files.Write("another/b.yaml", service{Host: reviews, Endpoints: endpoints(b[1], b[0])})
		}},
		{"a comment", func() { files.Write("another/b.yaml", "# reviewed", moving) }},
		{"labels and annotations", func() {
			files.Write("another/b.yaml", strings.Replace(moving.String(), "metadata: {", "metadata: {labels: {team: a}, annotations: {note: b}, ", 1))
		}},
		{"object renamed", func() {
			renamed := moving
			renamed.Name = "reviews-v2"
			files.Write("another/b.yaml", renamed)
		}},
	}
	for _, step := range steps {
		step.move()
		isthmus.Settle()
		if after := isthmus.sent(client); after != before {
			t.Errorf("%s: the client was sent\n%s, before that\n%s", step.name, after, before)
		}
	}
	client.AwaitAnswers("one", "two")
	calls.MustNotHaveFailed()
}

func TestManyChangesAtOnceAllArrive(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	isthmus := start(t, files)
	hosts := strings.Fields("a.example b.example c.example d.example e.example f.example")
	clients := make([]*calls.Client, len(hosts))
	for n, host := range hosts {
		clients[n] = dial(t, isthmus, host+":80", "shop")
	}
	for range 20 {
		for n, host := range hosts {
			files.Write(host+".yaml", service{Host: host, Endpoints: endpoints(b[n%2])})
			files.Write(host+".yaml", service{Host: host, Endpoints: endpoints(b[(n+1)%2])})
		}
	}
	for n, client := range clients {
		client.AwaitAnswers(b[(n+1)%2].Name)
	}
}
