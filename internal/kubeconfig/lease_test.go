package kubeconfig_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/internal/kubeconfig"
)

const (
	lease    = `{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"namespace": "mesh", "name": "isthmus", "uid": "u-1"}}`
	noLease  = `{"kind": "Status", "status": "Failure", "reason": "NotFound", "details": {"kind": "leases", "name": "isthmus"}, "code": 404}`
	noSpace  = `{"kind": "Status", "status": "Failure", "reason": "NotFound", "details": {"kind": "namespaces", "name": "mesh"}, "code": 404}`
	failure  = `{"kind": "Status", "status": "Failure", "message": "as it is"}`
	getRight = `allow the verb get on leases of the group coordination.k8s.io, resourceNames [isthmus], in the namespace mesh`
	newRight = `allow the verb create on leases of the group coordination.k8s.io in the namespace mesh`
)

var marker = kubeconfig.Lease{Namespace: "mesh", Name: "isthmus"}

// response is one answer of a server.
type response struct {
	code int
	body string
}

// answers starts a server that gives some answers in turn, the last one for good. The
// returned function lists its requests.
func answers(t *testing.T, list ...response) (*rest.Config, func() []string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.Path+string(body))
		now := list[min(len(asked), len(list))-1]
		w.WriteHeader(now.code)
		_, _ = w.Write([]byte(now.body))
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL + "/k8s/c-1/"}, func() []string { server.Close(); return asked }
}

// A Lease is absent only if an API server reports that. Answers of anything else, and
// denials, are errors.
func TestOnlyAnAPIServerReportsThatALeaseIsAbsent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code    int
		body    string
		uid     string
		problem string // empty for none
	}{
		"it exists":                 {200, lease, "u-1", ""},
		"it does not":               {404, noLease, "", ""},
		"access is denied":          {403, failure, "", getRight},
		"the user is unknown":       {401, failure, "", "401"},
		"the server is not ready":   {503, failure, "", "as it is"},
		"a proxy forbids":           {403, "<html>", "", "403"},
		"a proxy finds nothing":     {404, "<html>", "", "404"},
		"a proxy knows no cluster":  {404, `{"kind": "Status", "reason": "NotFound", "message": "no such cluster", "details": {"kind": "clusters", "name": "isthmus"}}`, "", "no such cluster"},
		"a bare 404":                {404, `{"kind": "Status", "reason": "NotFound"}`, "", "404"},
		"no Status":                 {404, strings.Replace(noLease, "Status", "Error", 1), "", "404"},
		"another Lease is missing":  {404, strings.Replace(noLease, "isthmus", "other", 1), "", "404"},
		"absent with another code":  {500, noLease, "", "500"},
		"a login page":              {200, "<html>", "", "no such Lease"},
		"nothing":                   {200, "", "", "no such Lease"},
		"another object":            {200, strings.Replace(lease, "Lease", "LeaseList", 1), "", "no such Lease"},
		"another Lease":             {200, strings.Replace(lease, "isthmus", "other", 1), "", "no such Lease"},
		"of another namespace":      {200, strings.Replace(lease, "mesh", "other", 1), "", "no such Lease"},
		"without a UID":             {200, strings.Replace(lease, "u-1", "", 1), "", "no such Lease"},
		"an endless answer":         {200, `{"kind": "` + strings.Repeat("x", 2<<20), "", "no such Lease"},
		"an endless message":        {503, `{"kind": "Status", "message": "` + strings.Repeat("x", 1<<19) + `"}`, "", "503"},
		"an endless, absent object": {404, `{"kind": "Status", "message": "` + strings.Repeat("x", 1<<20) + `", ` + noLease[1:], "", "404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, asked := answers(t, response{test.code, test.body})
			uid, err := marker.UID(t.Context(), target, false)
			if uid != test.uid || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("the UID is %q, the error %v", uid, err)
			}
			if err != nil && (len(err.Error()) > 1000 || !strings.Contains(err.Error(), "Lease mesh/isthmus of http://127.0.0.1:")) {
				t.Errorf("the error is %.1000q", err.Error())
			}
			if got := asked(); len(got) != 1 || got[0] != "GET /k8s/c-1/apis/coordination.k8s.io/v1/namespaces/mesh/leases/isthmus" {
				t.Errorf("the requests are %q", got)
			}
		})
	}
}

// A missing Lease is created without a holder, and the UID is read back, be it that another
// process was quicker.
func TestMissingLeaseIsCreated(t *testing.T) {
	t.Parallel()
	const at = "/k8s/c-1/apis/coordination.k8s.io/v1/namespaces/mesh/leases"
	const create = "POST " + at + `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":"mesh","name":"isthmus"}}`
	read := "GET " + at + "/isthmus"
	missing, exists := response{404, noLease}, response{200, lease}
	created := response{201, strings.Replace(lease, "u-1", "not read back", 1)}
	for name, test := range map[string]struct {
		answers []response
		asked   []string
		problem string // empty for none
	}{
		"it exists":                   {[]response{exists}, []string{read}, ""},
		"it is created":               {[]response{missing, created, exists}, []string{read, create, read}, ""},
		"another one was quicker":     {[]response{missing, {409, failure}, exists}, []string{read, create, read}, ""},
		"it may not be read":          {[]response{{403, failure}}, []string{read}, getRight},
		"it may not be created":       {[]response{missing, {403, failure}}, []string{read, create}, newRight},
		"its namespace is missing":    {[]response{missing, {404, noSpace}}, []string{read, create}, "create it, or choose another one by leaderElection.namespace"},
		"a proxy answers the reading": {[]response{{404, "<html>"}}, []string{read}, "404"},
		"a proxy answers the rest":    {[]response{missing, {200, "<html>"}}, []string{read, create}, "no such Lease"},
		"it does not stay":            {[]response{missing, created, missing}, []string{read, create, read}, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, asked := answers(t, test.answers...)
			uid, err := marker.UID(t.Context(), target, true)
			if (uid == "u-1") != (test.problem == "") || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("the UID is %q, the error %v", uid, err)
			}
			if got := asked(); !slices.Equal(got, test.asked) {
				t.Errorf("the requests are %q", got)
			}
		})
	}
}

// canned answers every request with the same response.
type canned response

// RoundTrip implements [http.RoundTripper].
func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: c.code, Status: http.StatusText(c.code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body)), Request: r,
	}, nil
}

// Whatever answers, a Lease has a UID or is absent only if the answer names that Lease.
func FuzzLease(f *testing.F) {
	for _, body := range []string{lease, noLease, noSpace, failure, "<html>", "", "null", "[]", `{"kind": 1}`, lease + lease} {
		for _, code := range []int{200, 403, 404, 503} {
			f.Add(code, body)
		}
	}
	f.Fuzz(func(t *testing.T, code int, body string) {
		uid, err := marker.UID(t.Context(), &rest.Config{Host: "http://api.test", Transport: canned{code, body}}, false)
		named := strings.Contains(body, "isthmus") || strings.Contains(body, `\u`)
		if err == nil && (!named || uid == "" && code != http.StatusNotFound || uid != "" && code != http.StatusOK) {
			t.Errorf("%d %q is taken for the UID %q", code, body, uid)
		}
	})
}
