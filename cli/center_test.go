package cli_test

import (
	"net/http"

	"github.com/rogpeppe/go-internal/testscript"

	center "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// registry starts a stand-in for a Service Center: in its app shop web uses cart, and
// the earlier bridge has a consumer.
func registry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: registry")
	}
	s := center.New(center.Config{Prompt: true, KeepAlive: true})
	ts.Check(s.Listen())
	ts.Defer(s.Close)
	ts.Setenv("REGISTRY", s.URL())
	cart := s.Register(center.Service{App: "shop", Name: "cart"})
	s.RegisterInstance(cart, center.Instance{ID: "c", HostName: "c", Endpoints: []string{"rest://10.0.0.1:80"}})
	s.Register(center.Service{App: "shop", Name: "servicecenter-watcher"})
	web := s.Register(center.Service{App: "shop", Name: "web"})
	request, err := http.NewRequest(http.MethodGet, s.URL()+"/v4/default/registry/instances?appId=shop&serviceName=cart", nil) //nolint:noctx // it ends with the stand-in
	ts.Check(err)
	request.Header.Set("X-ConsumerId", web)
	answer, err := http.DefaultClient.Do(request)
	ts.Check(err)
	ts.Check(answer.Body.Close())
}
