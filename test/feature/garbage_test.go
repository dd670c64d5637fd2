package feature_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// litter is what has no business in a registry.
var litter = []struct {
	what string
	drop func(*registry)
}{
	{"random bytes", func(r *registry) {
		chance := rand.NewChaCha8([32]byte{1})
		for i := range 20 {
			content := make([]byte, 1+i*i*40)
			_, _ = chance.Read(content)
			r.WriteBytes(fmt.Sprintf("random-%d.yaml", i), content)
			r.WriteBytes(fmt.Sprintf("random-%d.json", i), content)
		}
	}},
	{"a line of 10 MB", func(r *registry) { r.Write("long.json", `{"kind": "`+strings.Repeat("a", 10<<20)+`"}`) }},
	{"a word of 1 MB", func(r *registry) { r.WriteBytes("long.yaml", bytes.Repeat([]byte("a"), 1<<20)) }},
	{"lists 10,000 deep", func(r *registry) { r.WriteBytes("deep.yaml", bytes.Repeat([]byte("["), 10_000)) }},
	{"maps 10,000 deep", func(r *registry) { r.WriteBytes("deep.json", bytes.Repeat([]byte(`{"a":`), 10_000)) }},
	{"a billion laughs", func(r *registry) {
		text := "a0: &a0 [lol]\n"
		for i := range 12 {
			text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
		}
		r.Write("laughs.yaml", text)
	}},
	{"an alias of itself", func(r *registry) { r.Write("self.yaml", "a: &a [*a]") }},
	{"zero bytes", func(r *registry) { r.WriteBytes("zero.yaml", make([]byte, 1<<20)) }},
	{"a program", func(r *registry) { r.WriteBytes("program.yaml", must(os.ReadFile(must(os.Executable())))[:1<<20]) }},
	{"an empty file", func(r *registry) { r.Write("empty.yaml") }},
	{"a byte order mark", func(r *registry) { r.Write("mark.yaml", "\ufeff# only this") }},
	{"folders like files", func(r *registry) { r.Write("folder.yaml/inner.yaml", "nothing: here") }},
	{"a link to nothing", func(r *registry) { r.Link("nowhere", "dangling.yaml") }},
	{"a link to itself", func(r *registry) { r.Link("circle.yaml", "circle.yaml") }},
	{"a link upwards", func(r *registry) { r.Link(".", "here"); r.Link("..", "up") }},
	{"a pipe", pipe},
	{"1,000 documents", func(r *registry) { r.WriteBytes("many.yaml", bytes.Repeat([]byte("---\nkind: x\n"), 1000)) }},
}

func TestRegistryFullOfGarbageServesWhatIsGood(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	for _, l := range litter {
		l.drop(files)
	}
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	isthmus := start(t, files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	client.AwaitAnswers("two")
	isthmus.AwaitSource("files", "live", "")
}

func TestGarbageSpoilsNothingBesideIt(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	isthmus := start(t, files)
	client := dial(t, isthmus, reviews+":80", "shop")
	client.AwaitAnswers("one")
	calls := client.KeepCalling()
	for i, l := range litter {
		t.Log("dropping", l.what)
		l.drop(files)
		next := b[(i+1)%2]
		files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(next)})
		client.AwaitAnswers(next.Name)
		isthmus.AwaitSource("files", "live", "")
	}
	calls.MustNotHaveFailed()
}

// TestEveryRejectionNamesItsFile looks at what an operator sees of garbage.
func TestEveryRejectionNamesItsFile(t *testing.T) {
	t.Parallel()
	files := newRegistry(t, "files")
	files.Write("text.yaml", "hello")
	files.Write("broken.json", `{"kind": "ServiceEntry",`)
	files.WriteBytes("zero.yaml", make([]byte, 100))
	files.Link("nowhere", "dangling.yaml")
	files.Write("README.md", "not a manifest")
	isthmus := start(t, files)
	isthmus.AwaitSource("files", "live", "")
	want := []string{"broken.json", "dangling.yaml", "text.yaml", "zero.yaml"}
	var got []string
	for _, r := range isthmus.Source("files").Rejected {
		file, _, _ := strings.Cut(r.Where, ":")
		got = append(got, file)
	}
	if !slices.Equal(got, want) {
		t.Errorf("rejections are of %v, want %v", got, want)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
