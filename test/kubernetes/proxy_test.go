package kubernetes_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// way is the connection of one source to an API server, which a test can disturb.
type way struct {
	server *httptest.Server
	proxy  *httputil.ReverseProxy

	mu    sync.Mutex
	fault fault
	only  string                  // the resource that the fault is of; all if empty
	asked map[string][]url.Values // the parameters of each request, by resource
}

// fault is how requests fail.
type fault int

const (
	none      fault = iota
	refused         // connections end at once
	silent          // no request is answered
	failing         // each is answered with an error of the server
	expired         // lists are answered, and each watch says that its version is too old
	forbidden       // each is answered with a lack of rights
	listOnly        // watches do not begin with a list, as in API servers before 1.32
	cut             // lists end in the middle
	unwatched       // watches are answered with a lack of rights
	forgetful       // lists come in pages of one object, of which only the first is answered; watches as with listOnly
)

// newWay returns an undisturbed one.
func newWay(t testing.TB, api *cluster.APIServer) *way {
	t.Helper()
	return newWayAs(t, api, cluster.Admin)
}

// newWayAs returns one of a user.
func newWayAs(t testing.TB, api *cluster.APIServer, user string) *way {
	t.Helper()
	config, err := api.Config(user)
	if err != nil {
		t.Fatal(err)
	}
	through, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	w := &way{asked: map[string][]url.Values{}, proxy: &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: through, FlushInterval: -1,
		ErrorHandler: func(rw http.ResponseWriter, _ *http.Request, _ error) { panic(http.ErrAbortHandler) },
	}}
	w.server = httptest.NewUnstartedServer(w)
	w.server.Config.ErrorLog = nil
	w.server.Start()
	t.Cleanup(func() {
		w.Fail(none, "")
		w.server.CloseClientConnections()
		w.server.Close()
		if idle, ok := through.(interface{ CloseIdleConnections() }); ok {
			idle.CloseIdleConnections()
		}
	})
	return w
}

// Kubeconfig writes a file that leads there.
func (w *way) Kubeconfig(t testing.TB) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: w.server.URL}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// Fail disturbs what is asked for from now on, of one resource or of all, and cuts the
// connections that there are.
func (w *way) Fail(how fault, only string) {
	w.mu.Lock()
	w.fault, w.only = how, only
	w.mu.Unlock()
	w.server.CloseClientConnections()
}

// Asked are the parameters of each request so far, by resource.
func (w *way) Asked() map[string][]url.Values {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := map[string][]url.Values{}
	for resource, requests := range w.asked {
		asked[resource] = slices.Clone(requests)
	}
	return asked
}

// Cut ends the connections that there are.
func (w *way) Cut() { w.server.CloseClientConnections() }

// ServeHTTP implements [http.Handler].
func (w *way) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	how, only := w.fault, w.only
	resource := path.Base(r.URL.Path)
	w.asked[resource] = append(w.asked[resource], r.URL.Query())
	w.mu.Unlock()
	watches := r.URL.Query().Get("watch") == "true"
	if only != "" && !strings.HasSuffix(r.URL.Path, "/"+only) {
		how = none
	}
	status := func(code int, reason string) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(code)
		_, _ = rw.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason +
			`","message":"as the test wants it","code":` + strconv.Itoa(code) + `}`))
	}
	switch {
	case how == refused:
		panic(http.ErrAbortHandler)
	case how == silent:
		<-r.Context().Done()
	case how == failing:
		status(http.StatusInternalServerError, "InternalError")
	case how == forbidden:
		status(http.StatusForbidden, "Forbidden")
	case how == expired && watches && r.URL.Query().Get("sendInitialEvents") != "true":
		status(http.StatusGone, "Expired")
	case how == listOnly && r.URL.Query().Get("sendInitialEvents") == "true":
		status(http.StatusUnprocessableEntity, "Invalid")
	case how == unwatched && watches:
		status(http.StatusForbidden, "Forbidden")
	case how == forgetful && r.URL.Query().Get("sendInitialEvents") == "true":
		status(http.StatusUnprocessableEntity, "Invalid")
	case how == forgetful && r.URL.Query().Has("continue"):
		status(http.StatusGone, "Expired")
	case how == forgetful && r.URL.Query().Has("limit"):
		query := r.URL.Query()
		query.Set("limit", "1")
		r.URL.RawQuery = query.Encode()
		w.proxy.ServeHTTP(rw, r)
	case how == cut:
		w.proxy.ServeHTTP(&short{ResponseWriter: rw, rest: 300}, r)
	default:
		w.proxy.ServeHTTP(rw, r)
	}
}

// short ends an answer in its middle.
type short struct {
	http.ResponseWriter
	rest int
}

func (s *short) Write(p []byte) (int, error) {
	if s.rest -= len(p); s.rest < 0 {
		_, _ = s.ResponseWriter.Write(p[:len(p)+s.rest])
		panic(http.ErrAbortHandler)
	}
	return s.ResponseWriter.Write(p)
}

func (s *short) Unwrap() http.ResponseWriter { return s.ResponseWriter }
