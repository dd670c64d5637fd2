package registry

import "encoding/json"

// Limits of one batch find. The registry accepts bodies of up to 2 MiB, and an answer
// should be small enough to arrive in time.
const (
	mostBytes = 1_500_000
	MostKeys  = 2000
)

// Ask is a key to find, and its known revision.
type Ask struct {
	Key
	Rev string
}

// Batch is one batch find.
type Batch struct {
	Asks []Ask
	body []byte
}

// Batches divides asks into batch finds that the registry accepts, in order.
func Batches(asks []Ask) []Batch { return batches(asks, mostBytes, MostKeys) }

// batches divides asks in order. No batch exceeds the limits, unless a single key does.
func batches(asks []Ask, bytes, keys int) []Batch {
	const head, tail = `{"services":[`, `]}`
	var all []Batch
	var c Batch
	finish := func() {
		if len(c.Asks) > 0 {
			c.body = append(c.body, tail...)
			all = append(all, c)
		}
		c = Batch{}
	}
	for _, a := range asks {
		text := a.encode()
		if len(c.Asks) == keys || len(c.body)+1+len(text)+len(tail) > bytes {
			finish()
		}
		if len(c.Asks) == 0 {
			c.body = append(c.body, head...)
		} else {
			c.body = append(c.body, ',')
		}
		c.Asks, c.body = append(c.Asks, a), append(c.body, text...)
	}
	finish()
	return all
}

func (a Ask) encode() []byte {
	type key struct {
		Environment string `json:"environment"`
		App         string `json:"appId"`
		Service     string `json:"serviceName"`
	}
	text, err := json.Marshal(struct {
		Service key    `json:"service"`
		Rev     string `json:"rev"`
	}{key(a.Key), a.Rev})
	if err != nil { // strings can always be encoded
		panic(err)
	}
	return text
}

// Halves divides a batch in two, for a registry that rejects the whole batch because
// of one key in it.
func (b Batch) Halves() []Batch {
	middle := (len(b.Asks) + 1) / 2
	return append(Batches(b.Asks[:middle]), Batches(b.Asks[middle:])...)
}
