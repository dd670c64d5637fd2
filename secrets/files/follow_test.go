package files_test

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// swap replaces the files of a mounted secret as Kubernetes does: by one link.
func (w written) swap(t fataler, dir, version string) {
	t.Helper()
	w.write(t, filepath.Join(dir, version), mounted)
	if err := os.Symlink(version, filepath.Join(dir, "..next")); err != nil {
		t.Fatalf("%v", err)
	}
	if err := os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")); err != nil {
		t.Fatalf("%v", err)
	}
	for _, name := range mounted {
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)) // it is there from the second version on
	}
}

// later waits until a change in files is surely noticed.
func later() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

// A pair that is replaced by a link or file by file is served within two seconds, and so is one
// that comes later.
func TestReplacedPairsAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, dir := newAuthority(t), t.TempDir()
		first := ca.issue(cart)
		first.swap(t, filepath.Join(dir, "cart"), "..1")
		i, log, stop := follow(t, dir)
		defer stop()
		mustServe(t, i, cart, first)
		leaf, err := i.Issue(cart, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		bundle, changed := i.Bundle(), i.Changed()
		later()
		select {
		case <-changed:
			t.Error("a change is reported of files that are as they were")
		default:
		}
		second := ca.issue(cart)
		second.swap(t, filepath.Join(dir, "cart"), "..2")
		<-changed
		mustServe(t, i, cart, second)
		if i.Current(leaf) || i.Bundle() != bundle {
			t.Error("the certificate before may stay, or the authorities are others")
		}
		changed = i.Changed()
		third := ca.issue(till)
		third.write(t, filepath.Join(dir, "till"), helper)
		<-changed
		mustServe(t, i, till, third)
		mustServe(t, i, cart, second)
		if !strings.Contains(log.String(), "a certificate was replaced") || strings.Contains(log.String(), "ERROR") {
			t.Errorf("logged is\n%s", log)
		}
	})
}

// Files that are written slowly, one after the other, are no problem. Files that never rest are
// read nevertheless.
func TestFilesInChangeAreNoProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, dir := newAuthority(t), t.TempDir()
		ca.issue(cart).write(t, dir, helper)
		i, log, stop := follow(t, dir)
		defer stop()
		next := ca.issue(cart)
		time.Sleep(900 * time.Millisecond) // the next look is between two of them
		for n, text := range [][]byte{next.cert, next.key, next.authorities} {
			writeFile(t, filepath.Join(dir, helper[n]), text)
			time.Sleep(150 * time.Millisecond)
		}
		later()
		mustServe(t, i, cart, next)
		last := ca.issue(cart)
		last.write(t, dir, helper)
		for range 80 {
			last.authorities = append(last.authorities, '\n')
			writeFile(t, filepath.Join(dir, helper[2]), last.authorities)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		mustServe(t, i, cart, last)
		if strings.Contains(log.String(), "ERROR") {
			t.Errorf("logged is\n%s", log)
		}
	})
}

// A change is noticed even if the file keeps its size and its time, as within one step of a file
// system's clock.
func TestChangeWithinAStepOfTheClockIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, dir := newAuthority(t), t.TempDir()
		at := time.Now()
		write := func(pair written) {
			for n, text := range [][]byte{pair.cert, pair.key, pair.authorities} {
				path := filepath.Join(dir, mounted[n])
				writeFile(t, path, append(bytes.Repeat([]byte{'\n'}, 4096-len(text)), text...))
				if err := os.Chtimes(path, at, at); err != nil {
					t.Fatal(err)
				}
			}
		}
		write(ca.issue(cart))
		i, _, stop := follow(t, dir)
		defer stop()
		next := ca.issue(cart)
		write(next)
		later()
		mustServe(t, i, cart, next)
	})
}

// A missing pair and a missing folder are no reason to forget a certificate before it expires.
func TestMissingPairStaysUntilItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, dir := newAuthority(t), filepath.Join(t.TempDir(), "all")
		pair, other := ca.issue(cart), ca.issue(till, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(100 * time.Hour) })
		pair.write(t, filepath.Join(dir, "cart"), mounted)
		other.write(t, filepath.Join(dir, "till"), mounted)
		i, log, stop := follow(t, dir)
		defer stop()
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
		later()
		mustSay(t, i, log, dir+" cannot be read")
		mustServe(t, i, cart, pair)
		if err := os.RemoveAll(filepath.Join(dir+".away", "cart")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir+".away", dir); err != nil {
			t.Fatal(err)
		}
		later()
		if problems := i.Problems(); len(problems) != 1 || !strings.Contains(problems[0].Reason, "tls.crt, tls.key and ca.crt are gone; write them again; the certificate before, of "+cart) {
			t.Errorf("the problems are %v", problems)
		}
		mustServe(t, i, cart, pair)
		time.Sleep(time.Hour)
		synctest.Wait()
		if serves(t, i, cart) != nil || len(i.Problems()) > 0 {
			t.Errorf("it is served when it has expired; the problems are %v", i.Problems())
		}
		mustServe(t, i, till, other)
	})
}

// A certificate that expires while it is used stays, as Envoy keeps its last one, too. Its
// replacement is served as soon as it is valid.
func TestExpiredCertificateStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, dir := newAuthority(t), t.TempDir()
		pair := ca.issue(cart)
		pair.write(t, dir, mounted)
		i, log, stop := follow(t, dir)
		defer stop()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		mustServe(t, i, cart, pair)
		mustSay(t, i, log, "tls.crt: the certificate of "+cart+" expired at ", "renew it")
		next := ca.issue(cart, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })
		next.write(t, dir, mounted)
		later()
		mustServe(t, i, cart, pair)
		time.Sleep(80 * time.Second)
		synctest.Wait()
		mustServe(t, i, cart, next)
		if len(i.Problems()) > 0 {
			t.Errorf("the problems are %v", i.Problems())
		}
	})
}

// Of two folders with one identity the newer certificate is used, in whatever order they came.
func TestNewerOfTwoPairsIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		older := ca.issue(cart, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(-10 * time.Minute) })
		newer := ca.issue(cart)
		for _, order := range [][]written{{older, newer}, {newer, older}} {
			dir := t.TempDir()
			for n, pair := range order {
				pair.write(t, filepath.Join(dir, fmt.Sprint(n)), mounted)
			}
			i, log, stop := follow(t, dir)
			mustServe(t, i, cart, newer)
			later()
			mustSay(t, i, log, "are both of "+cart, "remove the other one")
			stop()
		}
	})
}

// Clients have a new authority before the first certificate under it, and the old one until the
// last certificate under it is gone from them.
func TestAuthoritiesLeadTheirCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after, dir := newAuthority(t), newAuthority(t), t.TempDir()
		pairs := map[string]written{cart: before.issue(cart), till: before.issue(till)}
		pairs[cart].write(t, filepath.Join(dir, "cart"), mounted)
		pairs[till].write(t, filepath.Join(dir, "till"), mounted)
		i, _, stop := follow(t, dir)
		defer stop()
		trusts := func(want bool, a *authority) {
			t.Helper()
			if got := bytes.Contains(i.Bundle().Authorities, encode(a.cert)); got != want {
				t.Errorf("it is trusted: %t, want %t", got, want)
			}
		}
		next := after.issue(cart)
		next.write(t, filepath.Join(dir, "cart"), mounted)
		later()
		trusts(true, before)
		trusts(true, after)
		mustServe(t, i, cart, pairs[cart])
		time.Sleep(10 * time.Second)
		synctest.Wait()
		mustServe(t, i, cart, next)
		last := after.issue(till)
		last.write(t, filepath.Join(dir, "till"), mounted)
		later()
		mustServe(t, i, till, last)
		time.Sleep(50 * time.Second)
		synctest.Wait()
		trusts(true, before)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		trusts(false, before)
		trusts(true, after)
		if err := os.RemoveAll(filepath.Join(dir, "cart")); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "till")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		trusts(true, after) // an empty list would have Envoys trust any certificate
	})
}

// Replicas that read the same pairs in other folders serve the same bytes.
func TestReplicasServeTheSame(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	one, two := ca.issue(cart), other.issue(till)
	a, b := t.TempDir(), t.TempDir()
	one.write(t, filepath.Join(a, "1"), mounted)
	two.write(t, filepath.Join(a, "2"), helper)
	one.cert = append([]byte("# a comment\n"), one.cert...)
	one.authorities = append(bytes.Clone(one.authorities), one.authorities...)
	two.write(t, filepath.Join(b, "1"), mounted)
	one.write(t, filepath.Join(b, "2"), mounted)
	first, _ := open(t, a)
	second, _ := open(t, b)
	for _, id := range []string{cart, till} {
		x, err := first.Issue(id, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		y, err := second.Issue(id, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if x.Generation != y.Generation || !x.Window.From.Equal(y.Window.From) || !bytes.Equal(x.Chain, y.Chain) || !bytes.Equal(x.Key, y.Key) {
			t.Errorf("%s differs", id)
		}
	}
	if !bytes.Equal(first.Bundle().Authorities, second.Bundle().Authorities) {
		t.Error("the authorities differ")
	}
}

// A writer replaces files one after the other, whole or in parts, in any order and at any pace.
// Whatever is served is one whole pair with its authorities; and at rest it is the last one.
func TestAnyOrderOfWritesServesWholePairs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) { writeInAnyOrder(t, rt) })
	})
}

func writeInAnyOrder(t *testing.T, draw *rapid.T) {
	ca, other, key, dir := newAuthority(t), newAuthority(t), newKey(t), t.TempDir()
	both := ca.issue(cart)
	both.authorities = encode(ca.cert, other.cert)
	pairs := []written{ca.issueFor(key, cart), ca.issueFor(key, cart), ca.issue(cart), other.issue(cart), both}
	pairs[0].write(t, dir, helper)
	i, _, stop := follow(t, dir)
	defer stop()
	for range rapid.IntRange(1, 12).Draw(draw, "writes") {
		p, file := rapid.SampledFrom(pairs).Draw(draw, "pair"), rapid.IntRange(0, 2).Draw(draw, "file")
		text, path := [][]byte{p.cert, p.key, p.authorities}[file], filepath.Join(dir, helper[file])
		switch rapid.SampledFrom([]string{"remove", "part", "whole", "rename"}).Draw(draw, "way") {
		case "remove":
			_ = os.Remove(path)
		case "part":
			writeFile(t, path, text[:rapid.IntRange(0, len(text)).Draw(draw, "part")])
		case "whole":
			writeFile(t, path, text)
		case "rename":
			writeFile(t, path+".new", text)
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Duration(rapid.IntRange(0, 1500).Draw(draw, "pause")) * time.Millisecond)
		synctest.Wait()
		if serves(t, i, cart) == nil {
			t.Fatal("nothing is served")
		}
	}
	final := rapid.SampledFrom(pairs).Draw(draw, "final")
	final.write(t, dir, helper)
	time.Sleep(15 * time.Second)
	synctest.Wait()
	if !bytes.Equal(serves(t, i, cart), final.cert) || len(i.Problems()) > 0 {
		t.Errorf("the last pair is not served: %q", i.Problems())
	}
}
