package feature_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestFileOf100MegabytesSpoilsNothingBesideIt has a file outgrow what is read,
// and shrink again.
func TestFileOf100MegabytesSpoilsNothingBesideIt(t *testing.T) {
	t.Parallel()
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two", "three")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	files.Write("other.yaml", service{Host: ratings, Endpoints: endpoints(b[1])})
	isthmus := start(t, files)
	client, other := dial(t, isthmus, reviews+":80", "shop"), dial(t, isthmus, ratings+":80", "shop")
	client.AwaitAnswers("one")
	other.AwaitAnswers("two")
	calls := client.KeepCalling()

	files.must(os.Truncate(files.At("shop.yaml"), 100<<20))
	await(t, "the file to be rejected", func() error {
		for _, r := range isthmus.Source("files").Rejected {
			if strings.HasPrefix(r.Where, "shop.yaml") && strings.Contains(r.Reason, "size of 100 MiB exceeds the limit of 64 MiB") {
				return nil
			}
		}
		return fmt.Errorf("rejected: %v", isthmus.Source("files").Rejected)
	})
	files.Write("other.yaml", service{Host: ratings, Endpoints: endpoints(b[2])})
	other.AwaitAnswers("three")
	client.AwaitAnswers("one")

	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[1])})
	client.AwaitAnswers("two")
	if rejected := isthmus.Source("files").Rejected; len(rejected) > 0 {
		t.Errorf("still rejected: %v", rejected)
	}
	calls.MustNotHaveFailed()
}

// TestHalfOfAFolderBecomesUnreadable has every second of 2,000 files be a link
// to itself, which nobody can read, while others change and go.
func TestHalfOfAFolderBecomesUnreadable(t *testing.T) {
	t.Parallel()
	const total = 2000
	files, b := newRegistry(t, "files"), startBackends(t, "one", "two")
	name := func(i int) string { return fmt.Sprintf("%02d/%04d.yaml", i%16, i) }
	host := func(i int) string { return fmt.Sprintf("s%d.example.com", i) }
	write := func(i int, b *backend) { files.Write(name(i), service{Host: host(i), Endpoints: endpoints(b)}) }
	for i := range total {
		write(i, b[0])
	}
	isthmus := start(t, files)
	isthmus.AwaitSource("files", "live", "")
	unreadable, readable := dial(t, isthmus, host(2)+":80", "shop"), dial(t, isthmus, host(1)+":80", "shop")
	unreadable.AwaitAnswers("one")
	readable.AwaitAnswers("one")
	calls := unreadable.KeepCalling()

	for i := range total {
		if i%2 == 0 {
			files.Link(name(i)[3:], ".link") // in one step, for a file that is gone is gone
			files.Move(".link", name(i))
		}
	}
	await(t, "half of the files to be rejected", func() error {
		if n := len(isthmus.Source("files").Rejected); n != total/2 {
			return fmt.Errorf("%d are rejected", n)
		}
		return nil
	})
	write(1, b[1])
	files.Remove(name(3))
	readable.AwaitAnswers("two")
	await(t, "the one that was removed to be gone, and nothing else", func() error {
		if s := isthmus.Source("files"); s.Services != total-1 || s.Endpoints != total-1 || s.Held != 0 {
			return fmt.Errorf("%d services, %d endpoints, %d held", s.Services, s.Endpoints, s.Held)
		}
		return nil
	})
	unreadable.AwaitAnswers("one")

	for i := range total {
		if i%2 == 0 {
			write(i, b[1])
		}
	}
	unreadable.AwaitAnswers("two")
	await(t, "every rejection to end", func() error {
		if n := len(isthmus.Source("files").Rejected); n > 0 {
			return fmt.Errorf("%d are still rejected", n)
		}
		return nil
	})
	isthmus.AwaitSource("files", "live", "")
	calls.MustNotHaveFailed()
}
