package servicecenter_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault servicecenter.Fault
		is    func(answer) bool
	}{
		"an error":    {servicecenter.FailWith(servicecenter.Internal), func(a answer) bool { return a.status == 500 && a.code == "500003" }},
		"a proxy":     {servicecenter.Answer(502, "text/html", "<html>"), func(a answer) bool { return a.status == 502 && a.text == "<html>" }},
		"nothing":     {servicecenter.Empty(), func(a answer) bool { return a.status == 200 && a.text == "" && a.err == nil }},
		"garbage":     {servicecenter.Garbage(), func(a answer) bool { return a.status == 200 && !json.Valid([]byte(a.text)) }},
		"half a body": {servicecenter.CutOff(20), func(a answer) bool { return a.status == 200 && len(a.text) == 20 && a.err != nil }},
		"late": {servicecenter.Late(time.Minute), func(a answer) bool {
			return a.status == 200 && strings.Contains(a.text, "cart")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, servicecenter.Config{Prompt: true}, func(t *testing.T, p *peer) {
				p.shop("cart")
				p.Inject(servicecenter.ListServices, test.fault, 1)
				if a := p.ask(t, http.MethodGet, "/v4/default/registry/health", ""); a.status != 200 {
					t.Errorf("another route is answered %+v", a)
				}
				if a := p.ask(t, http.MethodGet, listing, ""); !test.is(a) {
					t.Errorf("answered %+v", a)
				}
				if a := p.ask(t, http.MethodGet, listing, ""); a.status != 200 || !strings.Contains(a.text, "cart") {
					t.Errorf("the second time answered %+v", a)
				}
				p.Inject(servicecenter.Any, test.fault, 0)
				p.ask(t, http.MethodGet, listing, "")
				p.Repair()
				if a := p.ask(t, http.MethodGet, listing, ""); a.status != 200 || !strings.Contains(a.text, "cart") {
					t.Errorf("fixed, it answers %+v", a)
				}
			})
		})
	}
}

// TestAHungRequestEndsWithItsClientOrTheServer would else never end.
func TestAHungRequestEndsWithItsClientOrTheServer(t *testing.T) {
	t.Parallel()
	for _, closing := range []bool{false, true} {
		inBubble(t, servicecenter.Config{}, func(t *testing.T, p *peer) {
			p.Inject(servicecenter.Any, servicecenter.Hang(), 0)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			failed := make(chan error)
			go func() {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL()+listing, http.NoBody)
				if err != nil {
					failed <- err
					return
				}
				w, err := p.client.Do(r)
				if err == nil {
					_ = w.Body.Close()
				}
				failed <- err
			}()
			synctest.Wait()
			if closing {
				p.Close()
			}
			if err := <-failed; err == nil {
				t.Error("it was answered")
			}
		})
	}
}

func TestHalfABatchMayFail(t *testing.T) {
	t.Parallel()
	inBubble(t, servicecenter.Config{Prompt: true}, func(t *testing.T, p *peer) {
		p.shop("cart")
		p.shop("order")
		p.FailKeys(servicecenter.BackendDown, func(k servicecenter.Key) bool { return k.Name == "order" })
		a := p.ask(t, http.MethodPost, "/v4/default/registry/instances/action?type=query",
			`{"services":[{"service":{"appId":"shop","serviceName":"cart"}},{"service":{"appId":"shop","serviceName":"order"}}]}`)
		if !strings.Contains(a.text, `"failed":[{"indexes":[1],"error":{"errorCode":"500011"`) || !strings.Contains(a.text, `"updated":[{"index":0`) {
			t.Errorf("answered %+v", a)
		}
	})
}
