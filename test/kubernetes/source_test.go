package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/kubernetes"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// mirrored is a source that runs, with the store that it fills.
type mirrored struct {
	t          testing.TB
	store      *store.Memory
	supervisor *supervise.Supervisor
	stop       func()
}

// mirror runs a source of a cluster until the test ends.
func mirror(t testing.TB, kubeconfig string, change ...func(*kubernetes.Config)) *mirrored {
	t.Helper()
	return mirrorInto(t, store.NewMemory(store.Config{}), kubeconfig, change...)
}

// mirrorInto runs one that finds what is stored already.
func mirrorInto(t testing.TB, into *store.Memory, kubeconfig string, change ...func(*kubernetes.Config)) *mirrored {
	t.Helper()
	return mirrorTo(t, into, t.Output(), kubeconfig, change...)
}

// mirrorTo runs one that logs elsewhere.
func mirrorTo(t testing.TB, into *store.Memory, lines io.Writer, kubeconfig string, change ...func(*kubernetes.Config)) *mirrored {
	t.Helper()
	settings, ok := kubernetes.Kind().New().(*kubernetes.Config)
	if !ok {
		t.Fatal("the kind has other settings")
	}
	settings.Kubeconfig = kubeconfig
	for _, c := range change {
		c(settings)
	}
	if err := settings.Validate(); err != nil {
		t.Fatal(err)
	}
	m := &mirrored{t: t, store: into}
	log := slog.New(slog.NewTextHandler(lines, nil))
	src := settings.Open(source.Env{
		Instance: "test", Name: "k8s", Log: log,
		Stored: func() iter.Seq[model.Record] { return into.List(model.Filter{Source: "k8s"}) },
	})
	m.supervisor = supervise.New("k8s", src, m.store, supervise.Config{
		Kind: "kubernetes", MinBackoff: 50 * time.Millisecond, MaxBackoff: 500 * time.Millisecond, Log: log,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = m.supervisor.Run(ctx) })
	m.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(m.stop)
	return m
}

// records are what the store has of a namespace, as text by name.
func (m *mirrored) records(namespace string) map[string]string {
	out := map[string]string{}
	for r := range m.store.List(model.Filter{Source: "k8s"}) {
		if r.Namespace != namespace {
			continue
		}
		spec, err := json.Marshal(r.Spec)
		if err != nil {
			m.t.Fatal(err)
		}
		text := string(spec)
		if r.Status.Stale != "" {
			text += " stale"
		}
		out[string(r.Kind)+" "+r.Name] = text
	}
	return out
}

// await waits until something holds.
func await(t testing.TB, what string, check func() error) {
	t.Helper()
	until.NoError(t, 10*time.Millisecond, what, check)
}

func (m *mirrored) awaitState(want source.State) source.Status {
	m.t.Helper()
	var s source.Status
	await(m.t, "the source is "+string(want), func() error {
		if s = m.supervisor.Status(); s.State != want {
			return fmt.Errorf("it is %s: %s", s.State, s.Reason)
		}
		return nil
	})
	return s
}

// mustEqualAList compares what the store has of a namespace with what a source lists
// that starts from nothing.
func (m *mirrored) mustEqualAList(namespace string, fresh func() *mirrored) {
	m.t.Helper()
	await(m.t, "the store equals a list", func() error {
		f := fresh()
		defer f.stop()
		f.awaitState(source.StateLive)
		if diff := cmp.Diff(f.records(namespace), m.records(namespace)); diff != "" {
			return fmt.Errorf("(-list +store)\n%s", diff)
		}
		return nil
	})
}

var (
	services = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	slicesOf = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	nodesOf  = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	podsOf   = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// has reports whether an endpoint of an address is among records.
func has(records map[string]string, address string) bool {
	for name := range records {
		if strings.Contains(name, "/"+address+"/") {
			return true
		}
	}
	return false
}

// uids are those of the records of a namespace: a record that was deleted and came again
// has another.
func (m *mirrored) uids(namespace string) map[string]model.UID {
	uids := map[string]model.UID{}
	for r := range m.store.List(model.Filter{Source: "k8s"}) {
		if r.Namespace == namespace {
			uids[string(r.Kind)+" "+r.Name] = r.UID
		}
	}
	return uids
}

// mustHave finds which of the records with these UIDs were deleted since.
func (m *mirrored) mustHave(uids map[string]model.UID, namespace string) {
	m.t.Helper()
	now := m.uids(namespace)
	for name, uid := range uids {
		if now[name] != uid {
			m.t.Errorf("%s was deleted", name)
		}
	}
}

// awaitRejected waits until the status says something of a kind; nothing if it is empty.
func (m *mirrored) awaitRejected(kind, reason string) {
	m.t.Helper()
	await(m.t, fmt.Sprintf("%s: %q", kind, reason), func() error {
		for _, r := range m.supervisor.Status().Rejected {
			if r.Object == kind {
				if reason != "" && strings.Contains(r.Reason, reason) {
					return nil
				}
				return fmt.Errorf("the reason is %q", r.Reason)
			}
		}
		if reason != "" {
			return fmt.Errorf("nothing is said of it: %v", m.supervisor.Status().Rejected)
		}
		return nil
	})
}
