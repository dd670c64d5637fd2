package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

// listCache decodes lists of services, one after the other. A list is long and hardly
// ever changes, but some registries send it in another order every time. Hashing the
// entries costs far less than decoding them. So a list is decoded only if its entries
// differ from the last list's.
type listCache struct {
	last   digest
	answer List
}

// read decodes a list as [decodeList] does.
func (c *listCache) read(body []byte) (List, error) {
	now := digestOf(body)
	if now == c.last {
		return c.answer, nil
	}
	answer, err := decodeList(body)
	if err != nil {
		return List{}, err
	}
	c.last, c.answer = now, answer
	return answer, nil
}

// digest identifies the entries of a list in any order: the sum of their hashes. The
// zero digest means no list.
type digest struct {
	entries int
	sum     [sha256.Size / 8]uint64
}

func (d *digest) add(entry []byte) {
	hash := sha256.Sum256(entry)
	for i := range d.sum {
		d.sum[i] += binary.LittleEndian.Uint64(hash[8*i:])
	}
}

// Beginning and end of a list as the registry writes it, if it is not empty.
const listHead, listFoot = `{"services":[`, `]}`

// digestOf returns the digest of a list. It validates nothing: the first list with a
// digest is decoded, and another of the same digest has exactly the same entries.
func digestOf(body []byte) (d digest) {
	rest, begins := bytes.CutPrefix(bytes.TrimSpace(body), []byte(listHead))
	rest, ends := bytes.CutSuffix(rest, []byte(listFoot))
	if !begins || !ends {
		d.add(body)
		return d
	}
	for {
		end := entryEnd(rest)
		d.add(rest[:end])
		d.entries++
		if end == len(rest) {
			return d
		}
		rest = rest[end+1:]
	}
}

// entryEnd returns the end of the first of some JSON values with commas between them.
func entryEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}
