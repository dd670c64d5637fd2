package servicecenter

import (
	"encoding/json"
)

// Limits of one batch find. The registry takes bodies of up to 2 MiB, and an
// answer should not be so large that it cannot come in time.
const (
	mostBytes = 1_500_000
	mostKeys  = 2000
)

// ask is a key to find, and the revision that is known of it.
type ask struct {
	Key
	rev string
}

// chunk is what one batch find asks for.
type chunk struct {
	asks []ask
	body []byte
}

// chunks cuts what is to be found into batch finds, in order, none of which is
// larger than the limits allow, unless a single key is.
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

// halves cuts a chunk in two, for when a registry rejects the whole because of
// one key in it.
func (c chunk) halves() []chunk {
	middle := (len(c.asks) + 1) / 2
	return append(chunks(c.asks[:middle], mostBytes, mostKeys), chunks(c.asks[middle:], mostBytes, mostKeys)...)
}
