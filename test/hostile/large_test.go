package hostile

import (
	"context"
	encoded "encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// largeObject is a ServiceEntry of a few kilobytes that asks for as much as it can.
type largeObject struct {
	name                    string
	hosts, addresses, ports int
	protocol                string
	rejected                string // what the reason says; empty if the object is taken
}

// largeShapes are beyond what an object may ask for, and at its bounds.
var largeShapes = []largeObject{
	{"all-three", 100, 100, 100, "HTTP", "1000000 combinations"},
	{"listeners", 1, 200, 200, "TCP", "combinations"},
	{"most-combinations", 100, 20, 5, "HTTP", ""},
	{"most-listeners", 1, 200, 5, "TCP", ""},
}

// manifest is the object in a namespace of its own, which sees it alone. All objects have
// the same addresses. Its hosts are others in each round.
func (l largeObject) manifest(namespace string, round int) string {
	var m strings.Builder
	fmt.Fprintf(&m, "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: %s, namespace: %s}\nspec:\n  resolution: STATIC\n  exportTo: ['.']\n  hosts:\n", l.name, namespace)
	for i := range l.hosts {
		fmt.Fprintf(&m, "  - h%d.r%d.%s.example.com\n", i, round, l.name)
	}
	m.WriteString("  addresses:\n")
	for i := range l.addresses {
		fmt.Fprintf(&m, "  - 10.9.%d.%d\n", i/100, i%100+1)
	}
	m.WriteString("  ports:\n")
	for i := range l.ports {
		fmt.Fprintf(&m, "  - {number: %d, name: p%d, protocol: %s}\n", 20000+i, i, l.protocol)
	}
	return m.String()
}

// largeFiles are such objects in the registry, of several namespaces.
type largeFiles struct {
	*registry
	namespaces int
}

func (f largeFiles) path(namespace int, l largeObject) string {
	return filepath.Join(f.dir, fmt.Sprintf("%s-%d.yaml", l.name, namespace))
}

// write puts all shapes into the registry, or what they are in another round.
func (f largeFiles) write(round int) error {
	for n := range f.namespaces {
		for _, l := range largeShapes {
			draft := filepath.Join(f.desk, "large")
			if err := os.WriteFile(draft, []byte(l.manifest(fmt.Sprint("crowd-", n), round)), 0o600); err != nil {
				return err
			}
			if err := os.Rename(draft, f.path(n, l)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f largeFiles) remove() (err error) {
	for n := range f.namespaces {
		for _, l := range largeShapes {
			err = errors.Join(err, os.Remove(f.path(n, l)))
		}
	}
	return err
}

// largeObjects writes objects that ask for a great deal, again and again. Those beyond the
// bounds are rejected, and the others cost what they ask for.
func largeObjects(t *testing.T, r *room) string {
	files, rounds := largeFiles{r.registry, size(4, 1)}, 0
	r.beside(t, func(ctx context.Context) error {
		for end := time.Now().Add(size(6*time.Second, time.Second)); timeLeft(ctx, end); rounds++ {
			if err := files.write(rounds); err != nil {
				return err
			}
			if _, err := r.churn(ctx, size(time.Second, 200*time.Millisecond)); err != nil {
				return err
			}
		}
		return nil
	})
	await(t, "two of four shapes to be rejected", func() error { return files.judged(r.server.status(t)) })
	if err := files.remove(); err != nil {
		t.Error(err)
	}
	await(t, "the large objects to be gone", func() error {
		if status := r.server.status(t); status.Services != services || len(status.Rejected) > 0 {
			return fmt.Errorf("there are %d services, and %d objects are rejected", status.Services, len(status.Rejected))
		}
		return nil
	})
	return fmt.Sprintf("%d rounds of %d shapes in %d namespaces", rounds, len(largeShapes), files.namespaces)
}

// judged says what is wrong with the judgement of the objects.
func (f largeFiles) judged(status admin.Source) error {
	taken := 0
	for _, l := range largeShapes {
		if l.rejected == "" {
			taken++
		}
	}
	if got, want := status.Services-services, taken*f.namespaces; got != want {
		return fmt.Errorf("%d large objects are taken, want %d", got, want)
	}
	if got, want := len(status.Rejected), (len(largeShapes)-taken)*f.namespaces; got != want {
		return fmt.Errorf("%d objects are rejected, want %d", got, want)
	}
	for _, rejected := range status.Rejected {
		for _, l := range largeShapes {
			if strings.HasSuffix(rejected.Object, "/"+l.name) && (l.rejected == "" || !strings.Contains(rejected.Reason, l.rejected)) {
				return fmt.Errorf("%s is rejected: %s", rejected.Object, rejected.Reason)
			}
		}
	}
	return nil
}

// status is what the program says of its first source.
func (s *server) status(t *testing.T) (status admin.Source) {
	t.Helper()
	return s.statuses(t)[0]
}

func (s *server) statuses(t *testing.T) (list []admin.Source) {
	t.Helper()
	if err := encoded.Unmarshal(probe.Get("http://"+s.admin+"/api/v1/sources"), &list); err != nil || len(list) == 0 {
		t.Fatalf("the sources are %v: %v", list, err)
	}
	return list
}

// rejectedLocals counts the endpoints of the last source that are rejected as local.
func (s *server) rejectedLocals(t *testing.T) (n int) {
	t.Helper()
	list := s.statuses(t)
	for _, r := range list[len(list)-1].Rejected {
		if strings.Contains(r.Reason, "localAddresses: allow") {
			n++
		}
	}
	return n
}

// A process that is asked to end while large objects come in ends by itself.
func TestTerminatedBesideLargeObjects(t *testing.T) {
	if raced {
		t.Skip("the program that is attacked is built without the race detector")
	}
	t.Parallel()
	r := open(t, setup{}, &figures{name: "terminated"})
	files := largeFiles{r.registry, size(20, 5)}
	for round := range 3 {
		if err := files.write(round); err != nil {
			t.Fatal(err)
		}
		r.change(t)
	}
	if err := files.write(3); err != nil {
		t.Fatal(err)
	}
	if err := r.server.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.server.ended:
	case <-time.After(until.Patience):
		t.Fatal("the program does not end when it is asked to")
	}
	if exit := (*exec.ExitError)(nil); errors.As(r.server.err, &exit) {
		t.Errorf("the program ended with %v; its log says\n%s", exit, r.server.log.tail())
	}
}
