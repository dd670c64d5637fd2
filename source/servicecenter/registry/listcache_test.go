package registry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// entries are those of a list, as a registry writes them.
func entries(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"serviceId":"%040x","appId":"shop","serviceName":"service-%d","version":"1.0.%d","description":"a [long], \"quoted\" {text}",`+
			`"level":"BACK","schemas":["one","two"],"paths":[{"path":"/a","property":{"x":"y"}}],"status":"UP","properties":{"allowCrossApp":"true"},`+
			`"timestamp":"1795174553","modTimestamp":"1795174553","environment":"production","framework":{"name":"Spring","version":"2"}}`, i, i/3, i%3)
	}
	return all
}

func listOf(entries []string) []byte {
	return []byte(`{"services":[` + strings.Join(entries, ",") + `]}`)
}

// However lists follow one another, in whatever order and however damaged, each
// says what it says by itself.
func TestAListIsReadByItself(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var lists registry.ListCache
		pool := append(entries(4), `{}`, `null`, ` {"appId":"a", "serviceName":"b"} `, `7`, `{"services":[]}`, `"},{"`, ``, entries(1)[0])
		for range rapid.IntRange(2, 8).Draw(t, "lists") {
			body := listOf(rapid.SliceOfN(rapid.SampledFrom(pool), 0, 6).Draw(t, "entries"))
			switch rapid.SampledFrom([]string{"", "", "", "cut", "damage", "whole", "more"}).Draw(t, "how") {
			case "cut":
				body = body[:rapid.IntRange(0, len(body)).Draw(t, "after")]
			case "damage":
				body[rapid.IntRange(0, len(body)-1).Draw(t, "at")] = rapid.SampledFrom([]byte(`"{}[],: \x`)).Draw(t, "with")
			case "whole":
				body = []byte(rapid.SampledFrom(pool).Draw(t, "instead"))
			case "more":
				body = append(body[:len(body)-1], `,"errorCode":"400001"}`...)
			}
			want, wantBroken, wantErr := registry.ReadAlone(body)
			got, broken, err := lists.Read(body)
			if !slices.Equal(got, want) || broken != wantBroken || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("%s\nread as %v, %d broken, %v\nwant %v, %d broken, %v", body, got, broken, err, want, wantBroken, wantErr)
			}
		}
	})
}

// What is taken for an entry is one, in any list that is JSON.
func FuzzEntries(f *testing.F) {
	f.Add([]byte(strings.Join(entries(3), ",")))
	f.Add([]byte(`{"a":"\\\"},{"} , [[1,2],{}] ,"\\",null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var want []json.RawMessage
		if json.Unmarshal(slices.Concat([]byte("["), text, []byte("]")), &want) != nil || len(want) == 0 {
			return
		}
		for n, rest := 0, text; ; n++ {
			end := registry.EntryEnd(rest)
			if n >= len(want) || !bytes.Equal(bytes.Trim(rest[:end], " \t\r\n"), want[n]) {
				t.Fatalf("entry %d of %q ends after %d", n, text, end)
			}
			if end == len(rest) {
				break
			}
			rest = rest[end+1:]
		}
	})
}

// BenchmarkList reads a list that does not change: in the order of the one
// before, in another, and as if there had been none before.
func BenchmarkList(b *testing.B) {
	const n = 10_000
	all := entries(n)
	lists := [][]byte{listOf(all)}
	for range 7 {
		rand.New(rand.NewPCG(1, uint64(len(lists)))).Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] }) //nolint:gosec // any order
		lists = append(lists, listOf(all))
	}
	for name, read := range map[string]func(cache *registry.ListCache, i int) error{
		"decoded":       func(_ *registry.ListCache, i int) error { return registry.Decode(lists[i%len(lists)]) },
		"another order": func(cache *registry.ListCache, i int) error { return cache.Decode(lists[i%len(lists)]) },
		"same order":    func(cache *registry.ListCache, _ int) error { return cache.Decode(lists[0]) },
	} {
		b.Run(name, func(b *testing.B) {
			cache := &registry.ListCache{}
			b.SetBytes(int64(len(lists[0])))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := read(cache, i); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/service")
		})
	}
}
