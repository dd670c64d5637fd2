package admin_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A preview that cannot be answered says why, and the next one is answered.
func TestPreviewOfSplitsRejectsWhatIsNone(t *testing.T) {
	t.Parallel()
	listener := loopback(t)
	crowded(t, 1, listener)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	ask := func(kind, body string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+listener.Addr().String()+"/api/v1/splits/preview", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", kind)
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	const host = "service-0.some-namespace.svc.cluster.local"
	of := func(backends string) string {
		return fmt.Sprintf(`[{"host": %q, "namespace": "shop", "backends": [%s]}]`, host, backends)
	}
	const json = "application/json"
	for _, test := range []struct {
		kind, body string
		status     int
		text       string
	}{
		{"text/plain", of(""), http.StatusUnsupportedMediaType, "is not application/json"},
		{json, "{}", http.StatusBadRequest, "the request is no list of splits: "},
		{json, of(`{"wait": 1}`), http.StatusBadRequest, `unknown field "wait"`},
		{json, of(`{"weight": -1}`), http.StatusBadRequest, "split 0, of " + host + ": the weight -1 is not between 0 and 1000000"},
		{json, of(`{"weight": 1000001}`), http.StatusBadRequest, "the weight 1000001 is not"},
		{json, of(`{"source": "files"}`), http.StatusBadRequest, "it has only weights of 0"},
		{json, of(strings.TrimSuffix(strings.Repeat(`{"weight": 1},`, 65), ",")), http.StatusBadRequest, "it has 65 backends, and 64 are the most"},
		{json, of(strings.Repeat(" ", 1<<20)), http.StatusRequestEntityTooLarge, "more than 1048576 bytes"},
		{json, of(`{"source": "files", "weight": 1}`), http.StatusOK, `"problems": []`},
		{json, of(""), http.StatusOK, `"expected": []`},
		{json, `[{"host": "unknown.example", "backends": [{"source": "files", "weight": 1}]}]`, http.StatusOK, "no source lists the host unknown.example"},
		{json, "[]", http.StatusOK, "[]"},
	} {
		if status, text := ask(test.kind, test.body); status != test.status || !strings.Contains(text, test.text) {
			t.Errorf("%.80s is answered with %d %s, want %d %s", test.body, status, text, test.status, test.text)
		}
	}
}
