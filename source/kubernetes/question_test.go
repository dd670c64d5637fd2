package kubernetes_test

import (
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
	"github.com/isthmus-mesh/isthmus/store"
)

// silent is a fault under which watches are answered and deliver nothing. They end after a
// while, unless that is zero.
func silent(after time.Duration) fault {
	return func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("watch") == "" {
			return nil, nil
		}
		s := &stream{of: r, wake: make(chan struct{}, 1), closed: func(*stream) {}}
		if after > 0 {
			time.AfterFunc(after, func() { s.end(io.EOF) })
		}
		return s.answer(r), nil
	}
}

// goOn is how a watch ends that does not: it is silent from now on.
func goOn(*stream) {}

func services(endpoints ...string) sourcetest.Services {
	all := sourcetest.Services{}
	for _, host := range []string{"a.example", "c.example"} {
		service := sourcetest.Service{}
		for _, e := range endpoints {
			service.Endpoints = append(service.Endpoints, netip.MustParseAddrPort(e+":8080"))
		}
		all[host] = service
	}
	return all
}

func addresses(in *store.Memory) string {
	var list []string
	for rec := range in.List(model.Filter{Source: "k8s", Kind: model.KindEndpoint}) {
		if e, is := rec.Spec.(model.Endpoint); is {
			list = append(list, strings.TrimPrefix(rec.Owner.Name, "service:")+"@"+e.Address)
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// Deleted endpoints are served for a limited time behind a watch that goes on and delivers nothing:
// the API server is asked after ten minutes, and then every three. The source has a notice until
// an event comes.
func TestSilenceIsAQuestion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault fault
		last  func(*stream)
	}{
		"watches never deliver":           {silent(0), goOn},
		"watches end after 1.5 s":         {silent(1500 * time.Millisecond), ends},
		"connections break, and are mute": {silent(0), breaks},
	} {
		for _, listOnly := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r, stored := newRegistry(listOnly), store.NewMemory(store.Config{})
					r.Set(services("10.0.0.1", "10.0.0.2"))
					s, stop := supervised(t, r, stored)
					defer stop()
					mustServe(t, stored, "at first", "a@10.0.0.1 a@10.0.0.2 c@10.0.0.1 c@10.0.0.2")
					r.api.fail(c.fault, c.last)
					pass(time.Second)
					r.Set(services("10.0.0.1", "10.0.0.3"))
					pass(12 * time.Minute)
					mustServe(t, stored, "after twelve minutes", "a@10.0.0.1 a@10.0.0.3 c@10.0.0.1 c@10.0.0.3")
					if st := s.Status(); st.State != source.StateLive || len(st.Notices) != 2 || !strings.Contains(st.Notices[0].Text, "look for a proxy") {
						t.Errorf("it is %s (%s) with %d notices: %v", st.State, st.Reason, len(st.Notices), st.Notices)
					}
					r.Set(services("10.0.0.1"))
					pass(4 * time.Minute)
					mustServe(t, stored, "four minutes later", "a@10.0.0.1 c@10.0.0.1")

					r.api.fail(nil, ends)
					r.Set(services("10.0.0.1", "10.0.0.5"))
					pass(4 * time.Minute)
					r.Set(services("10.0.0.1", "10.0.0.4"))
					pass(time.Second)
					mustServe(t, stored, "at once", "a@10.0.0.1 a@10.0.0.4 c@10.0.0.1 c@10.0.0.4")
					if st := s.Status(); st.State != source.StateLive || len(st.Notices) > 0 {
						t.Errorf("at last it is %s (%s) with notices %v", st.State, st.Reason, st.Notices)
					}
				})
			})
		}
	}
}

// Where the API server has sent bookmarks, it is asked three minutes after the last one, up to a tenth
// later, and everything is listed 10 s after its answer.
func TestSilenceAfterBookmarksIsFoundSooner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, stored := newRegistry(false), store.NewMemory(store.Config{})
		r.Set(services("10.0.0.1", "10.0.0.2"))
		s, stop := supervised(t, r, stored)
		defer stop()
		for range 30 {
			pass(time.Minute)
			r.api.write("nothing", nil) // sends bookmarks to all watches
		}
		pass(time.Second)
		r.api.fail(silent(0), goOn)
		r.Set(services("10.0.0.1", "10.0.0.3"))
		pass(3*time.Minute + 18*time.Second + 10*time.Second + 2*time.Second)
		mustServe(t, stored, "after three minutes and a half", "a@10.0.0.1 a@10.0.0.3 c@10.0.0.1 c@10.0.0.3")
		if st := s.Status(); st.State != source.StateLive || len(st.Notices) != 2 || !strings.Contains(st.Notices[0].Text, "look for a proxy") {
			t.Errorf("it is %s (%s) with %d notices: %v", st.State, st.Reason, len(st.Notices), st.Notices)
		}
	})
}

func mustServe(t *testing.T, in *store.Memory, when, want string) {
	t.Helper()
	if got := addresses(in); got != want {
		t.Errorf("%s endpoints are %q, want %q", when, got, want)
	}
}

// isQuestion and isList distinguish the two requests for all objects of a kind.
func isQuestion(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList")
}

func isList(r *http.Request) bool {
	_, _, resource := asked(r)
	begins := r.URL.Query().Get("sendInitialEvents") == "true"
	return kinds[resource] != "" && !isQuestion(r) && (begins || r.URL.Query().Get("watch") == "")
}

// Where nothing changes, silence costs a request for each kind and ten minutes at most, and
// none if the API server sends bookmarks. Nothing is suspected or listed.
func TestQuietClusterIsAskedLittle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, bookmarks bool
		most              int32
	}{"without bookmarks": {false, false, 6 * 13}, "with bookmarks": {true, true, 0}, "with bookmarks that end": {true, false, 7 * 13}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, stored := newRegistry(false), store.NewMemory(store.Config{})
				r.api.unmarked = !c.before
				s, stop := supervised(t, r, stored)
				defer stop()
				for _, endpoints := range [][]string{{"10.0.0.1"}, {"10.0.0.1", "10.0.0.2", "10.0.0.4"}, {"10.0.0.2"}} {
					r.Set(services(endpoints...))
					pass(time.Second)
				}
				mustServe(t, stored, "at first", "a@10.0.0.2 c@10.0.0.2")
				var questions, lists atomic.Int32
				r.api.fail(func(r *http.Request) (*http.Response, error) {
					if isQuestion(r) {
						questions.Add(1)
					}
					if isList(r) {
						lists.Add(1)
					}
					return nil, nil
				}, ends)
				for range 60 {
					if pass(time.Minute); c.bookmarks {
						r.api.write("nothing", nil) // sends bookmarks to all watches
					}
				}
				if n := questions.Load(); n > c.most || c.most > 0 && n == 0 {
					t.Errorf("%d questions in an hour, want %d at most", n, c.most)
				}
				if st := s.Status(); st.State != source.StateLive || len(st.Notices) > 0 || lists.Load() > 0 {
					t.Errorf("it is %s (%s), with notices %v after %d lists", st.State, st.Reason, st.Notices, lists.Load())
				}
			})
		})
	}
}

// Events that are on their way while the API server is asked are not missed.
func TestLateEventsAreNotMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, stored := newRegistry(false), store.NewMemory(store.Config{})
		r.Set(services("10.0.0.1"))
		s, stop := supervised(t, r, stored)
		defer stop()
		var lists atomic.Int32
		entries := &stream{wake: make(chan struct{}, 1), closed: func(*stream) {}}
		r.api.fail(only("serviceentries", func(q *http.Request) (*http.Response, error) {
			switch {
			case isList(q):
				lists.Add(1)
			case isQuestion(q):
				last := r.api.sorted("serviceentries", "")[0]
				time.AfterFunc(5*time.Second, func() { entries.send("MODIFIED", last) })
			default:
				return entries.answer(q), nil
			}
			return nil, nil
		}), ends)
		pass(time.Second)
		r.Set(services("10.0.0.2"))
		pass(15 * time.Minute)
		mustServe(t, stored, "at last", "a@10.0.0.2 c@10.0.0.2")
		if st := s.Status(); len(st.Notices) > 0 || lists.Load() > 0 {
			t.Errorf("with notices %v after %d lists", st.Notices, lists.Load())
		}
	})
}

// A question without an answer makes the source stale, with the reason, whether the mute watches
// go on or are begun again and again.
func TestQuestionWithoutAnswerMakesStale(t *testing.T) {
	t.Parallel()
	for _, ending := range []time.Duration{0, 1500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			r, stored := newRegistry(false), store.NewMemory(store.Config{})
			r.Set(services("10.0.0.1"))
			s, stop := supervised(t, r, stored)
			defer stop()
			mute := silent(ending)
			r.api.fail(func(r *http.Request) (*http.Response, error) {
				if response, err := mute(r); response != nil || err != nil {
					return response, err
				}
				return rejection(http.StatusServiceUnavailable, "ServiceUnavailable"), nil
			}, ends)
			pass(9 * time.Minute)
			if st := s.Status(); st.State != source.StateLive {
				t.Errorf("before it asks it is %s: %s", st.State, st.Reason)
			}
			pass(3 * time.Minute)
			if st := s.Status(); st.State != source.StateStale || !strings.Contains(st.Reason, "as drawn") && !strings.Contains(st.Reason, "without an event") {
				t.Errorf("it is %s: %s", st.State, st.Reason)
			}
			mustServe(t, stored, "while it is stale", "a@10.0.0.1 c@10.0.0.1")
			r.api.fail(nil, ends)
			pass(time.Minute)
			if st := s.Status(); st.State != source.StateLive {
				t.Errorf("at last it is %s: %s", st.State, st.Reason)
			}
		})
	}
}

// An event is an answer to a question that failed.
func TestEventAnswersAQuestion(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{"before the answer": -time.Second, "after it": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, stored := newRegistry(false), store.NewMemory(store.Config{})
				r.Set(services("10.0.0.1"))
				s, stop := supervised(t, r, stored)
				defer stop()
				var failed atomic.Int32
				watched := &stream{wake: make(chan struct{}, 1), closed: func(*stream) {}}
				r.api.fail(only("services", func(q *http.Request) (*http.Response, error) {
					if !isQuestion(q) {
						return watched.answer(q), nil
					}
					failed.Add(1)
					last := r.api.sorted("services", "")[0]
					time.AfterFunc(2*time.Second+late, func() { watched.send("MODIFIED", last) })
					time.Sleep(2 * time.Second)
					return rejection(http.StatusServiceUnavailable, "ServiceUnavailable"), nil
				}), ends)
				for range 15 * 60 {
					pass(time.Second)
					if st := s.Status(); st.State != source.StateLive {
						t.Fatalf("it is %s: %s", st.State, st.Reason)
					}
				}
				if n := failed.Load(); n != 1 {
					t.Errorf("%d questions failed, want 1", n)
				}
			})
		})
	}
}

// A watch that should begin with a list, and does not come to its end, gives way to a list.
func TestFirstListNeedsNoWatch(t *testing.T) {
	t.Parallel()
	for sent := range 2 { // of the events of the list
		synctest.Test(t, func(t *testing.T) {
			r, stored := newRegistry(false), store.NewMemory(store.Config{})
			r.Set(services("10.0.0.1"))
			mute := silent(0)
			r.api.fail(func(q *http.Request) (*http.Response, error) {
				response, err := mute(q)
				if _, _, resource := asked(q); response != nil && sent > 0 && len(r.api.sorted(resource, "")) > 0 {
					response.Body.(*stream).send("ADDED", r.api.sorted(resource, "")[0]) //nolint:forcetypeassert // as made above
				}
				return response, err
			}, goOn)
			s, stop := supervised(t, r, stored)
			defer stop()
			pass(2 * time.Minute)
			if st := s.Status(); st.State != source.StateLive {
				t.Errorf("it is %s: %s", st.State, st.Reason)
			}
			mustServe(t, stored, "after two minutes", "a@10.0.0.1 c@10.0.0.1")
		})
	}
}

// An API server that was restored from a backup has older versions than it has sent, and its
// watches from there deliver nothing. The question fails, and the next run lists the backup.
func TestRestoredAPIServerIsReadAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, stored := newRegistry(false), store.NewMemory(store.Config{})
		r.Set(services("10.0.0.1"))
		s, stop := supervised(t, r, stored)
		defer stop()
		mute := silent(0)
		r.api.fail(func(q *http.Request) (*http.Response, error) {
			switch since, _ := strconv.Atoi(q.URL.Query().Get("resourceVersion")); {
			case since == 0: // anew
				return nil, nil
			case isQuestion(q):
				return rejection(http.StatusGatewayTimeout, "Timeout"), nil
			default:
				return mute(q)
			}
		}, goOn)
		pass(time.Second)
		r.Set(services("10.0.0.2"))
		pass(14 * time.Minute)
		mustServe(t, stored, "after 14 minutes", "a@10.0.0.2 c@10.0.0.2")
		if st := s.Status(); st.State != source.StateLive {
			t.Errorf("it is %s: %s", st.State, st.Reason)
		}
	})
}
