package authority_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/secrets"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// said is a log.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), text)
}

// follow returns an issuer that follows a folder until the test ends.
func follow(t *testing.T, dir string) (*authority.Issuer, *said) {
	t.Helper()
	a, err := authority.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	i, log := a.Issuer(longest), &said{}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { i.Follow(ctx, slog.New(slog.NewTextHandler(log, nil))) })
	t.Cleanup(func() { stop(); running.Wait() })
	return i, log
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	until.NoError(t, 10*time.Millisecond, what, func() error {
		if !holds() {
			return errors.New("it does not hold")
		}
		return nil
	})
}

func leafOf(t *testing.T, i *authority.Issuer) *secrets.Leaf {
	t.Helper()
	leaf, err := i.Issue(web, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// An issuer takes each step of a rotation without a restart. The bundle changes with the
// first and the last step alone.
func TestAnIssuerFollowsARotation(t *testing.T) {
	t.Parallel()
	r := newRotated(t)
	i, _ := follow(t, r.dir)
	first, one, changed := leafOf(t, i), i.Bundle(), i.Changed()
	begun := r.begin()
	sent := func(when string, leaf *secrets.Leaf, root *x509.Certificate) {
		if !i.Sent([][]*x509.Certificate{append(certificates(t, leaf.Chain), root)}) {
			t.Errorf("%s its certificate is not taken for one", when)
		}
	}
	sent("at first", first, begun.Root)
	another, _ := follow(t, newRotated(t).dir)
	other := certificates(t, leafOf(t, another).Chain)
	if i.Sent([][]*x509.Certificate{other}) || i.Sent(nil) {
		t.Error("a certificate of another authority is taken for one of its own")
	}
	<-changed
	both := i.Bundle()
	if n := len(certificates(t, both.Authorities)); n != 2 || both == one {
		t.Errorf("%d roots are trusted after the first step", n)
	}
	if leaf := leafOf(t, i); leaf.Generation != first.Generation || len(certificates(t, leaf.Chain)) != 2 {
		t.Error("the next root signs")
	}
	changed = i.Changed()
	r.move()
	await(t, "the next root to sign", func() bool { return leafOf(t, i).Generation != first.Generation })
	if chain := certificates(t, leafOf(t, i).Chain); len(chain) != 3 || verify(chain, time.Now(), begun.Root) != nil || verify(chain, time.Now(), begun.Other) != nil {
		t.Errorf("the chain has %d certificates", len(chain))
	}
	sent("while both roots are trusted,", first, begun.Root)
	sent("when the next root signs,", leafOf(t, i), begun.Other)
	sent("by the cross certificate,", leafOf(t, i), begun.Root)
	<-changed // since the issuing certificate is another
	changed = i.Changed()
	if i.Bundle() != both || !i.Current(first) {
		t.Error("the bundle, or a certificate of the old root, did not stay")
	}
	r.confirm()
	r.finish()
	<-changed
	sent("on an open connection, at the end,", first, begun.Root)
	if last := certificates(t, i.Bundle().Authorities); len(last) != 1 || !last[0].Equal(begun.Other) {
		t.Errorf("%d roots are trusted at the end", len(last))
	}
	if chain := certificates(t, leafOf(t, i).Chain); len(chain) != 2 {
		t.Errorf("the chain has %d certificates at the end", len(chain))
	}
}

// A folder that cannot be read changes nothing, is logged once, and is read once it can be.
func TestAnIssuerKeepsTheLastAuthority(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, other := create(t)
		foreign := content(t, other)
		r := newRotated(t)
		i, log := follow(t, r.dir)
		first, bundle := leafOf(t, i), i.Bundle()
		path := filepath.Join(r.dir, "root.pem")
		fine, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]string{"half": "is not the root of a trust domain", foreign["root.pem"]: "restore both from the same backup", "": "is not the root"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			await(t, want, func() bool {
				f := i.Fault()
				return f != nil && strings.Contains(f.Err.Error(), want) && !f.Since.IsZero()
			})
			if leaf := leafOf(t, i); leaf.Generation != first.Generation || i.Bundle() != bundle {
				t.Error("another authority is used")
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		await(t, "a missing file to be noticed", func() bool { return strings.Contains(i.Fault().Err.Error(), "is unfinished") })
		time.Sleep(time.Minute) // many more looks
		if n := log.count("is unfinished"); n != 1 {
			t.Errorf("it is logged %d times", n)
		}
		if err := os.WriteFile(path, fine, 0o600); err != nil {
			t.Fatal(err)
		}
		await(t, "the folder to be read again", func() bool { return i.Fault() == nil })
		r.begin()
		await(t, "the next root", func() bool { return i.Bundle() != bundle })
	})
}
