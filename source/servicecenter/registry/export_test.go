package registry

import (
	"fmt"
	"slices"
	"time"
)

// ReadBody reads an answer of at most so many bytes.
var ReadBody = readBody

func BatchesOf(asks []Ask, bytes, keys int) []Batch { return batches(asks, bytes, keys) }

func (b Batch) Body() []byte { return b.body }

// Attempts are logins.
type Attempts = attempts

// Try makes a login that fails, if it may be made.
func (a *attempts) Try(password []byte, now time.Time) bool {
	if a.wait(password, now) > 0 {
		return false
	}
	a.begin(password, now)
	return true
}

// DecodeAll reads bytes as every answer there is, and returns the answers of n keys.
func DecodeAll(body []byte, n int) ([]Found, error) {
	_, _ = decodeList(body)
	_, _ = decodeGraph(body, true)
	_, _ = decodeEvent(body)
	_ = rejectedWith(400, body).Error()
	return decodeFound(body, n)
}

// DecodeFound reads the answer of a find of n keys.
func DecodeFound(body []byte, n int) error {
	_, err := decodeFound(body, n)
	return err
}

// ListCache reads lists, one after the other.
type ListCache struct{ listCache }

// Read says what a list has, and how many of its entries make no sense.
func (c *ListCache) Read(body []byte) (services []string, broken int, err error) {
	return shown(c.read(body))
}

// ReadAlone is Read without regard to any other list.
func ReadAlone(body []byte) (services []string, broken int, err error) {
	return shown(decodeList(body))
}

func shown(l List, err error) ([]string, int, error) {
	var all []string
	for _, s := range l.Services {
		all = append(all, fmt.Sprintf("%+v", s))
	}
	slices.Sort(all)
	return all, l.Broken, err
}

// Decode is Read for its cost alone.
func (c *ListCache) Decode(body []byte) error {
	_, err := c.read(body)
	return err
}

// Decode is ReadAlone for its cost alone.
func Decode(body []byte) error {
	_, err := decodeList(body)
	return err
}

// EntryEnd is where the first of some values ends.
func EntryEnd(text []byte) int { return entryEnd(text) }

// Summary says what the answer to a find of n keys says of each.
func Summary(body []byte, n int) (all []string) {
	found, err := decodeFound(body, n)
	if err != nil {
		return []string{"error: " + err.Error()}
	}
	for _, f := range found {
		switch {
		case IsNoService(f.Err):
			all = append(all, "denied")
		case f.Err != nil:
			all = append(all, f.Err.Error())
		case f.Same:
			all = append(all, "same")
		default:
			all = append(all, fmt.Sprintf("%d instances", len(f.Instances)))
		}
	}
	return all
}
