package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/lockfile"
)

// Rotation is the state of the rotation of the root.
type Rotation struct {
	Step Step
	Root *x509.Certificate // signs certificates
	// Other is trusted beside it: the next root if the rotation has begun, the one before if
	// the new root signs. Nil without a rotation.
	Other *x509.Certificate
	// Since is when the step was taken; zero if that is not known. The new root signs since
	// then at the latest.
	Since time.Time
	// Due is when the last certificate of the old root has expired; zero if that is not known.
	Due time.Time
}

// Step is the last step of a rotation that was taken.
type Step string

// The steps of a rotation. It ends with [FinishRotation].
const (
	StepNone  Step = "none"    // one root is trusted
	StepBegun Step = "begun"   // the next root is trusted, and signs nothing
	StepMoved Step = "signing" // the new root signs, and the one before is still trusted
)

// rotationRecord is the content of the file of the rotation. It is written once all
// processes sign with the new root.
type rotationRecord struct {
	Root    string    `json:"root"`    // fingerprint of the new root
	Since   time.Time `json:"since"`   // since when all processes sign with it
	Longest string    `json:"longest"` // the longest validity of a certificate
}

func parseRotation(text []byte) (*rotationRecord, error) {
	r := &rotationRecord{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	if longest, err := time.ParseDuration(r.Longest); err != nil || longest <= 0 || r.Since.IsZero() || r.Root == "" {
		return nil, errors.New("it is not the record of a rotation")
	}
	return r, nil
}

// RotationOf returns the state of a folder's rotation.
func RotationOf(dir string) (Rotation, error) {
	d := folder(dir)
	roots, _, err := d.readRoots()
	if err != nil {
		return Rotation{}, err
	}
	r := Rotation{Step: StepNone, Root: roots[0]}
	if len(roots) == 1 {
		return r, nil
	}
	r.Other = roots[1]
	if !moved(roots) {
		r.Step, r.Since = StepBegun, r.Other.NotBefore.Add(backdated)
		return r, nil
	}
	r.Step = StepMoved
	record, err := d.readRotation()
	if err != nil || record == nil || record.Root != Fingerprint(r.Root) {
		return r, err
	}
	longest, err := time.ParseDuration(record.Longest)
	r.Since, r.Due = record.Since, record.Since.Add(longest)
	return r, err
}

// rotate takes a step with the lock of the folder, and returns the state after it.
func rotate(dir string, step func(d folder, r Rotation, keys []*ecdsa.PrivateKey) error) (Rotation, error) {
	d := folder(dir)
	if _, err := OpenFolder(dir); err != nil { // before a file for the lock is made
		return Rotation{}, err
	}
	lock, err := d.lock()
	if err != nil {
		return Rotation{}, err
	}
	defer lockfile.Release(lock)
	r, err := RotationOf(dir)
	if err != nil {
		return Rotation{}, err
	}
	var keys []*ecdsa.PrivateKey
	if _, err := os.Stat(d.path(RootKeyFile)); err == nil || !d.has(IssuerFile) {
		if keys, err = d.readRootKeys(); err != nil {
			return Rotation{}, err
		}
		if keyOf(r.Root, keys) == nil {
			return Rotation{}, lacksKey(d, "root")
		}
	}
	if err := step(d, r, keys); err != nil {
		return Rotation{}, err
	}
	return RotationOf(dir)
}

// BeginRotation makes the next root, which is trusted from then on and signs nothing yet. It
// changes nothing if a rotation has begun.
func BeginRotation(dir string, now time.Time) (Rotation, error) {
	return rotate(dir, func(d folder, r Rotation, keys []*ecdsa.PrivateKey) error {
		if r.Step != StepNone {
			return nil
		}
		if !now.Before(r.Root.NotAfter) {
			return expired(r.Root)
		}
		if len(keys) == 0 {
			return lacksKey(d, "root")
		}
		next := now.Truncate(time.Second)
		if first := r.Root.NotBefore.Add(backdated + time.Second); next.Before(first) { // the newer root has the later time
			next = first
		}
		if next.After(now.Add(backdated)) {
			return fmt.Errorf("the root is valid from %s on, and it is %s now: set the clock, and repeat the command",
				r.Root.NotBefore.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
		}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		root, err := makeRoot(domainOf(r.Root), key, next)
		if err != nil {
			return err
		}
		if err := d.writeKeys(RootKeyFile, keyOf(r.Root, keys), key); err != nil {
			return err
		}
		return d.writeRoots(r.Root, root)
	})
}

// MoveSigning lets the next root sign, given by its fingerprint: the caller knows that every
// client trusts that one. If it signs already, a lost cross certificate is made anew.
func MoveSigning(dir, next string, now time.Time) (Rotation, error) {
	return rotate(dir, func(d folder, r Rotation, keys []*ecdsa.PrivateKey) error {
		root, before := r.Other, r.Root
		if r.Step == StepMoved {
			root, before = r.Root, r.Other
			_, err := d.readCross([]*x509.Certificate{root, before}, root)
			if err == nil && d.issuedBy(root) == nil && Fingerprint(root) == next {
				return nil
			}
		}
		switch {
		case r.Step == StepNone:
			return fmt.Errorf("no rotation has begun: begin one with 'isthmus ca rotate begin --dir %s'", d)
		case Fingerprint(root) != next:
			return fmt.Errorf("the next root is another one by now: look at it with 'isthmus ca show --dir %s', and repeat the command", d)
		case !now.Before(before.NotAfter):
			return expired(before)
		case keyOf(root, keys) == nil || keyOf(before, keys) == nil:
			return lacksKey(d, "next root")
		}
		cross, err := makeCross(root, before, keyOf(before, keys), now)
		if err != nil {
			return err
		}
		if err := d.replace(CrossFile, public, encodeCertificates([]*x509.Certificate{cross})); err != nil {
			return err
		}
		if err := d.writeRoots(root, before); err != nil || !d.has(IssuerFile) || d.issuedBy(root) == nil {
			return err
		}
		return d.writeIssuing(signer{root, keyOf(root, keys)}, now, LongestIssuing)
	})
}

// ConfirmSigning records that every process signs with a root, given by its fingerprint, and the
// longest validity of their certificates. The old root may leave once these have expired.
func ConfirmSigning(dir, root string, longest time.Duration, now time.Time) (Rotation, error) {
	return rotate(dir, func(d folder, r Rotation, _ []*ecdsa.PrivateKey) error {
		switch {
		case r.Step != StepMoved || Fingerprint(r.Root) != root:
			return fmt.Errorf("another root signs by now: look at it with 'isthmus ca show --dir %s'", d)
		case !r.Since.IsZero(): // the first time counts
			return nil
		}
		if err := d.issuedBy(r.Root); err != nil {
			return err
		}
		text, err := encoded(rotationRecord{Root: root, Since: now.UTC().Truncate(time.Second).Add(time.Second), Longest: longest.String()})
		if err != nil {
			return err
		}
		return d.replace(RotationFile, public, text)
	})
}

// FinishRotation ends the trust in the old root, once its last certificate has expired. Without a
// rotation it removes the remains of an interrupted one.
func FinishRotation(dir string, now time.Time) (Rotation, error) {
	return rotate(dir, func(d folder, r Rotation, keys []*ecdsa.PrivateKey) error {
		switch {
		case r.Step == StepBegun:
			return fmt.Errorf("the next root signs nothing yet: let it sign with 'isthmus ca rotate sign --dir %s --admin ADDRESS'", d)
		case r.Step == StepMoved && r.Due.IsZero():
			return fmt.Errorf("it is not known yet that every Isthmus signs with the new root: repeat 'isthmus ca rotate sign --dir %s --admin ADDRESS'", d)
		case r.Step == StepMoved && now.Before(r.Due):
			return fmt.Errorf("certificates of the old root are valid until %s: repeat the command then", r.Due.UTC().Format(time.RFC3339))
		case r.Step == StepMoved:
			if err := d.issuedBy(r.Root); err != nil {
				return err
			}
			if err := d.writeRoots(r.Root); err != nil {
				return err
			}
		}
		if len(keys) > 1 {
			if err := d.writeKeys(RootKeyFile, keyOf(r.Root, keys)); err != nil {
				return err
			}
		}
		if err := os.Remove(d.path(RotationFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s cannot be removed: %w; remove it", d.path(RotationFile), plainCause(err))
		}
		return nil
	})
}

func expired(root *x509.Certificate) error {
	return fmt.Errorf("the root expired at %s and signs nothing: create another authority", root.NotAfter.Format(time.RFC3339))
}

func lacksKey(d folder, of string) error {
	return fmt.Errorf("%s has no key of the %s in %s: put the key back, or restore both from the same backup", d.path(RootKeyFile), of, d.path(RootFile))
}
