package servicecenter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// late is a registry as it is: under steady change it shows nothing new for tens
// of seconds.
var late = standin.Config{KeepAlive: true}

// busy has an instance of one service change 20 times a second for so many
// seconds, and calls f after each of them.
func (r *rig) busy(service string, seconds int, f func(second int)) {
	r.instance(service, "busy", "10.9.9.9:8080")
	for second := range seconds {
		for n := range 20 {
			r.SetProperties(service, "busy", map[string]string{"n": fmt.Sprint(second, n)})
			r.pass(50 * time.Millisecond)
		}
		f(second)
	}
}

// While a registry changes 20 times a second it shows nothing new for up to 40 s.
// What comes, changes and goes is mirrored within few rounds all the same.
func TestSteadyChangeIsMirroredInTime(t *testing.T) {
	for name, most := range map[string]int{"default": 6, "cacheOnly": 60} {
		t.Run(name, func(t *testing.T) {
			bubble(t, late, func(r *rig) {
				for n := range 40 {
					r.many(fmt.Sprintf("s%02d", n), n, 2)
				}
				other, cart := r.many("other", 100, 1), r.many("cart", 101, 3)
				c := r.config()
				c.CacheOnly = name == "cacheOnly"
				m := r.mirror(c)
				r.rounds(2)
				longest, since := 0, 0
				gone, come := "", "cart-000"
				r.busy(other, 90, func(second int) {
					stored := m.stored()
					if strings.Contains(stored, "cart/"+come+" ") && (gone == "" || !strings.Contains(stored, "cart/"+gone+" ")) {
						longest = max(longest, second-since)
						gone, come, since = come, fmt.Sprintf("next-%02d", second), second
						r.instance(cart, come, fmt.Sprintf("10.1.0.%d:80", second+1))
						r.UnregisterInstance(cart, gone)
					}
				})
				longest = max(longest, 89-since)
				if longest > most || name == "cacheOnly" && longest < 20 {
					t.Errorf("a change was mirrored after up to %d s", longest)
				}
			})
		})
	}
}

// A registry that has lost most of its instances may show them nevertheless, to
// protect itself. That its backend lacks them is no reason to delete them.
func TestMassLossInTheBackendIsNotBelieved(t *testing.T) {
	bubble(t, late, func(r *rig) {
		ids := map[string]string{}
		for n := range 10 {
			name := fmt.Sprintf("s%02d", n)
			ids[name] = r.many(name, n, 2)
		}
		m := r.mirror(r.config())
		r.rounds(2)
		before := m.stored()
		for name, id := range ids {
			if name != "s00" {
				r.UnregisterInstance(id, name+"-000")
				r.UnregisterInstance(id, name+"-001")
			}
		}
		for range 10 {
			r.rounds(1)
			if got := m.stored(); got != before {
				t.Fatalf("stored:\n%s\n\nwant:\n%s", got, before)
			}
		}
		if !strings.Contains(r.log.String(), "backend lacks most") {
			t.Errorf("nothing of it is logged: %s", r.log)
		}
		// What comes is taken all the same, and in the end the registry shows what is
		// gone. It protects no service that changes: once it shows a change, it answers
		// who does not know it from its backend.
		r.instance(ids["s05"], "new", "10.0.5.9:8080")
		r.rounds(2)
		if got := m.stored(); !strings.Contains(got, "s05/new ") || !strings.Contains(got, "s06/s06-000 ") {
			t.Errorf("stored:\n%s", got)
		}
		r.pass(10 * time.Minute)
		if got := m.Status().Endpoints; got != 3 {
			t.Errorf("%d endpoints in the end:\n%s", got, m.stored())
		}
	})
}

// A registry whose backend is silent answers from its cache. Nothing is slower or
// worse for it.
func TestBackendThatIsSilentDoesNoHarm(t *testing.T) {
	bubble(t, late, func(r *rig) {
		cart := r.many("cart", 0, 2)
		m := r.mirror(r.config())
		r.rounds(2)
		r.Inject(standin.BatchFind, func(s *standin.Server, w http.ResponseWriter, q *http.Request, next http.Handler) {
			if q.URL.Query().Get("noCache") == "1" {
				standin.Hang()(s, w, q, next)
				return
			}
			next.ServeHTTP(w, q)
		}, 0)
		r.pass(20 * time.Second)
		before := r.Requests(standin.ListServices)
		r.pass(3 * time.Minute)
		if got := r.Requests(standin.ListServices) - before; got < 45 {
			t.Errorf("%d rounds in three minutes", got)
		}
		m.is(source.StateLive, "")
		r.instance(cart, "new", "10.0.0.9:8080")
		r.pass(15 * time.Second)
		if !strings.Contains(m.stored(), "cart/new ") {
			t.Errorf("stored:\n%s", m.stored())
		}
	})
}

// While all is quiet, few services are found directly, however many there are, and
// all of them in turn.
func TestFewAreFoundDirectlyWhileAllIsQuiet(t *testing.T) {
	bubble(t, late, func(r *rig) {
		for n := range 100 {
			r.many(fmt.Sprintf("s%03d", n), n, 1)
		}
		asked, largest := map[string]bool{}, 0
		r.mirror(r.config())
		r.rounds(3)
		r.Inject(standin.BatchFind, func(_ *standin.Server, w http.ResponseWriter, q *http.Request, next http.Handler) {
			if q.URL.Query().Get("noCache") == "1" {
				names := namesAsked(t, q)
				largest = max(largest, len(names))
				for _, name := range names {
					asked[name] = true
				}
			}
			next.ServeHTTP(w, q)
		}, 0)
		r.rounds(10)
		if largest > 16 || len(asked) != 100 {
			t.Errorf("%d of 100 services, up to %d at once", len(asked), largest)
		}
	})
}

// namesAsked are the services that a batch find asks for.
func namesAsked(t *testing.T, q *http.Request) (names []string) {
	t.Helper()
	body, err := io.ReadAll(q.Body)
	if err != nil {
		t.Error(err)
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	var asked struct {
		Services []struct{ Service struct{ ServiceName string } }
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		t.Error(err)
	}
	for _, s := range asked.Services {
		names = append(names, s.Service.ServiceName)
	}
	return names
}
