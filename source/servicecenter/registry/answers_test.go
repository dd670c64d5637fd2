package registry_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/source/servicecenter/records"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// noon is when tests take place.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Whatever is to be found is asked for once, in order, in batches that the
// registry takes.
func TestBatchesAskForEverythingOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z]{0,40}`))
		asks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) registry.Ask {
			return registry.Ask{Key: registry.Key{Environment: text.Draw(t, "environment"), App: text.Draw(t, "app"), Service: text.Draw(t, "service")}, Rev: text.Draw(t, "rev")}
		}), 0, 30).Draw(t, "asks")
		most, keys := rapid.IntRange(1, 600).Draw(t, "bytes"), rapid.IntRange(1, 8).Draw(t, "keys")
		var asked []registry.Ask
		for _, c := range registry.BatchesOf(asks, most, keys) {
			var body struct {
				Services []json.RawMessage `json:"services"`
			}
			if err := json.Unmarshal(c.Body(), &body); err != nil || len(body.Services) != len(c.Asks) {
				t.Fatalf("%q: %v", c.Body(), err)
			}
			if len(c.Asks) == 0 || len(c.Asks) > keys || len(c.Body()) > most && len(c.Asks) > 1 {
				t.Fatalf("%d keys, %d bytes", len(c.Asks), len(c.Body()))
			}
			asked = append(asked, c.Asks...)
		}
		if !slices.Equal(asked, asks) {
			t.Fatalf("asked %v of %v", asked, asks)
		}
	})
}

// No number of logins that fail locks an account: within a quarter of an hour
// there are never three, whatever the passwords and whenever they are tried.
func TestLoginsNeverLock(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var a registry.Attempts
		now := noon
		var made []time.Time
		for range rapid.IntRange(1, 60).Draw(t, "tries") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "later")))
			password := bytes.Repeat([]byte{'x'}, rapid.IntRange(1, 3).Draw(t, "password"))
			if a.Try(password, now) {
				made = append(made, now)
			}
		}
		for n := 2; n < len(made); n++ {
			if made[n].Sub(made[n-2]) <= 15*time.Minute {
				t.Fatalf("three logins at %v", made[n-2:n+1])
			}
		}
		if len(made) == 0 || now.Sub(made[len(made)-1]) > 40*time.Minute {
			t.Fatalf("no login since %v at %v", made, now)
		}
	})
}

// Whatever the bytes, reading an answer ends, and every key that was asked for
// has an answer or a reason why not.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{
		`{"services":{"updated":[{"index":0,"rev":"r","instances":[{"instanceId":"1","endpoints":["rest://10.0.0.1:80"]}]}],"notModified":[1],"failed":[{"indexes":[2],"error":{"errorCode":"400012","errorMessage":"no","detail":"d"}}]}}`,
		`{"services":{"updated":[{"index":0,"instances":[{"properties":[1]},null,7]}]}}`,
		`{"services":[{"appId":"a","serviceName":"b","properties":{"a":1}},null,{}]}`,
		`{"errorCode":400012,"errorMessage":"x"}`, `{"allServicesDetail":[{"microService":{"appId":"a"},"providers":[{}]}]}`,
		`{"services":{"updated":[{"index":-1}],"notModified":[99999999]}}`, ``, `[]`, `{"services":{}}`, `{"action":"CREATE","key":{"appId":"a","serviceName":"b"}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		const keys = 3
		found, err := registry.DecodeAll(body, keys)
		if err == nil && len(found) != keys {
			t.Errorf("%d of %d keys are answered", len(found), keys)
		}
		for _, f := range found {
			records.Rules{}.Convert(records.Identity{App: "a", Service: "s"}, records.Name{Namespace: "n", Host: "s"}, f.Instances, nil, noon)
		}
	})
}
