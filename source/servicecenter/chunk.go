package servicecenter

import (
	"encoding/json"
)

// Limits of one batch find. The registry accepts bodies of up to 2 MiB, and an answer
// should be small enough to arrive in time.
const (
	mostBytes = 1_500_000
	mostKeys  = 2000
)

// ask is a key to find, and its known revision.
type ask struct {
	Key
	rev string
}

// chunk is one batch find.
type chunk struct {
	asks []ask
	body []byte
}

// chunks divides asks into batch finds, in order. None exceeds the limits, unless a
// single key does.
func chunks(asks []ask, bytes, keys int) []chunk {
	const head, tail = `{"services":[`, `]}`
	var all []chunk
	var c chunk
	finish := func() {
		if len(c.asks) > 0 {
			c.body = append(c.body, tail...)
			all = append(all, c)
		}
		c = chunk{}
	}
	for _, a := range asks {
		text := a.encode()
		if len(c.asks) == keys || len(c.body)+1+len(text)+len(tail) > bytes {
			finish()
		}
		if len(c.asks) == 0 {
			c.body = append(c.body, head...)
		} else {
			c.body = append(c.body, ',')
		}
		c.asks, c.body = append(c.asks, a), append(c.body, text...)
	}
	finish()
	return all
}

func (a ask) encode() []byte {
	type key struct {
		Environment string `json:"environment"`
		App         string `json:"appId"`
		Service     string `json:"serviceName"`
	}
	text, err := json.Marshal(struct {
		Service key    `json:"service"`
		Rev     string `json:"rev"`
	}{key(a.Key), a.rev})
	if err != nil { // strings can always be encoded
		panic(err)
	}
	return text
}

// halves divides a chunk in two, for a registry that rejects the whole chunk because
// of one key in it.
func (c chunk) halves() []chunk {
	middle := (len(c.asks) + 1) / 2
	return append(chunks(c.asks[:middle], mostBytes, mostKeys), chunks(c.asks[middle:], mostBytes, mostKeys)...)
}
