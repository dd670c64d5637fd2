package authority

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

var errDamaged = errors.New("it is damaged")

// blocksOf returns the content of all PEM blocks of a text. Each has to be whole, and of one
// type.
func blocksOf(text []byte, kind string) (blocks [][]byte, err error) {
	begun := bytes.Count(text, []byte("-----BEGIN"))
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if block.Type != kind {
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
