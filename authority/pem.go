package authority

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

var errDamaged = errors.New("it is damaged")

// blocksOf returns the content of all PEM blocks of a text. Each has to be whole, and their types
// follow each other in turn.
func blocksOf(text []byte, kinds ...string) (blocks [][]byte, err error) {
	begun := bytes.Count(text, []byte("-----BEGIN"))
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if block.Type != kinds[len(blocks)%len(kinds)] {
			return nil, errDamaged
		}
		blocks, text = append(blocks, block.Bytes), rest
	}
	if len(blocks) != begun { // the decoder skips a damaged block
		return nil, errDamaged
	}
	return blocks, nil
}

// encodeCertificates returns certificates in PEM form.
func encodeCertificates(list []*x509.Certificate) (text []byte) {
	for _, c := range list {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c.Raw})...)
	}
	return text
}
