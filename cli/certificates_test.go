package cli_test

import (
	"bytes"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/cli"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// The certificates that clients were sent are listed, with their streams, also after the stream.
func TestCertificatesThatAreOutAreListed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	createAuthority(t, dir)
	s := newTrusting(t, testca.New(t, "ca"), dir)
	list := func(flags ...string) string {
		var out bytes.Buffer
		if status := cli.Main(t.Context(), "test", append([]string{"ca", "certificates", "--admin", s.admin}, flags...), nil, &out, &out); status != 0 {
			t.Errorf("status %d: %s", status, &out)
		}
		return out.String()
	}
	if got := list("-o", "json"); got != "[]\n" {
		t.Errorf("at first: %s", got)
	}
	conn := s.dial("web")
	s.holdsRoots(conn, "web-1")
	s.holdsRoots(conn, "web-2")
	const at = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ +`
	if got := list(); !regexp.MustCompile(`^IDENTITY +FROM +RENEWED +UNTIL +STREAMS +LAST STREAM\nspiffe://cluster\.local/ns/shop/sa/web +` + at + at + at + `2 +\S+ ago\n$`).MatchString(got) {
		t.Errorf("with two streams:\n%s", got)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	until.NoError(t, 20*time.Millisecond, "certificates without a stream", func() error {
		if got := list(); !regexp.MustCompile(`(?m)/sa/web .* 0 +\S+ ago$`).MatchString(got) {
			return errors.New(got)
		}
		return nil
	})
}
