package guide_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/guide"
)

// page has everything that a page may have. What its terminals write shows that a
// command goes on, and that the same one is ended before it starts again.
const page = `# Title

## Write

~~~yaml
# folder/name.yaml
port: 8000
~~~

### Read

~~~sh
cat folder/name.yaml; echo more
echo $VARIABLE
~~~

~~~text
port:   8000
from the …
~~~

## Nothing to do

## Go on

~~~sh once
exit 1
~~~

~~~sh terminal
sh -c 'echo $$ >> started; tail -f started'
~~~

~~~sh
cat started | wc -l
~~~

~~~text
1
~~~

~~~sh terminal
sh -c 'echo $$ >> started; tail -f started'
~~~

~~~sh
cat started | wc -l
kill -0 $(head -n 1 started) 2> /dev/null || echo gone
~~~

~~~text
2
gone
~~~
`

func TestPageIsFollowed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(page, "~~~", "```")), 0o600); err != nil {
		t.Fatal(err)
	}
	p := guide.Read(t, file, "8000", "1234")
	if got := p.Titles(); !slices.Equal(got, []string{"Write", "Read", "Go on"}) {
		t.Errorf("the steps are %q", got)
	}
	if got := p.Step(t, "Write").Blocks; len(got) != 1 || got[0].File() != "folder/name.yaml" {
		t.Errorf("the first step is %+v", got)
	}
	r := guide.NewReader(t, nil, "VARIABLE=from the test")
	for _, s := range p.Steps {
		r.Follow(s)
	}
}

// TestFetchIsTriedAgain has a command that fails the first time, and that cannot be done
// where it has begun before.
func TestFetchIsTriedAgain(t *testing.T) {
	t.Parallel()
	once := guide.Step{Title: "Fetch", Blocks: []guide.Block{{
		Language: "sh once", Text: "mkdir begun; test -e $STATE || { touch $STATE; exit 1; }\necho $STATE > begun/here\n",
	}}}
	r := guide.NewReader(t, nil)
	r.Follow(once)
	if _, err := os.Stat(filepath.Join(r.Dir, "begun")); !os.IsNotExist(err) {
		t.Errorf("a reader who has everything fetches: %v", err)
	}
	r.FetchEnv = append(os.Environ(), "STATE="+filepath.Join(t.TempDir(), "tried"))
	r.Follow(once)
	if _, err := os.Stat(filepath.Join(r.Dir, "begun", "here")); err != nil {
		t.Error(err)
	}
}

// failed is a test that is to fail: its log, and how long it goes on.
type failed struct {
	testing.TB
	log []string
	ctx context.Context //nolint:containedctx // a test has one
}

func (f *failed) Helper() {}

func (f *failed) Context() context.Context { return f.ctx }

func (f *failed) Fatalf(format string, values ...any) {
	f.log = append(f.log, fmt.Sprintf(format, values...))
	panic(f)
}

func TestPageThatIsNotTrueFailsItsTest(t *testing.T) {
	t.Parallel()
	const waited = `for "One" of the guide to print `
	sh := func(text string) guide.Block { return guide.Block{Language: "sh", Text: text} }
	for want, blocks := range map[string][]guide.Block{
		waited + `["1" "2"]`:  {sh("echo 1\n"), {Language: "text", Text: "1\n2\n"}},
		waited + `["2" "1"]`:  {sh("echo 1; echo 2\n"), {Language: "text", Text: "2\n1\n"}},
		"exit status 3":       {sh("exit 3\n")},
		"has ended by itself": {{Language: "sh terminal", Text: "true\n"}, sh("echo 1\n"), {Language: "text", Text: "2\n"}},
		"nothing prints":      {{Language: "text", Text: "1\n"}},
		"of no language":      {{Text: "1\n"}},
		"no name of a file":   {{Language: "yaml", Text: "# ../a\n"}},
	} {
		var f *failed
		func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if strings.HasPrefix(want, waited) { // for lines that never come
				time.AfterFunc(time.Second, cancel)
			}
			f = &failed{TB: t, ctx: ctx}
			defer func() {
				if got := recover(); got != nil && got != any(f) {
					panic(got)
				}
			}()
			guide.NewReader(f, nil).Follow(guide.Step{Title: "One", Blocks: blocks})
		}()
		if got := strings.Join(f.log, "\n"); !strings.Contains(got, want) {
			t.Errorf("%+v: the test fails with %q, not with %q", blocks, got, want)
		}
	}
}
