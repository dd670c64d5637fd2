package cli_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/cli"
)

// An answer of the admin API that does not end takes neither memory nor time without bound.
func TestAnswersThatDoNotEndAreGivenUp(t *testing.T) {
	t.Parallel()
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(spaces); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	code := cli.Main(t.Context(), "1.2.3-test", []string{"sources", "--admin", server.URL, "--timeout", "5m"}, strings.NewReader(""), &out, &errs)
	if code != 1 || !strings.Contains(errs.String(), "more than 256 MiB") {
		t.Errorf("it exits with %d and says %s", code, errs.String())
	}
}
