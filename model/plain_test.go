package model_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// What is written by hand is what encoding/json writes, byte for byte.
func TestEncodeAgreesWithJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.OneOf(rapid.Custom(drawPlainRecord), rapid.Custom(drawRecord)).Draw(t, "record")
		got, err := model.Encode(r)
		want, wantErr := json.Marshal(r)
		if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Fatalf("encoded as\n%s, %v\nwant\n%s, %v", got, err, want, wantErr)
		}
	})
}

// What is read by hand is what encoding/json reads, of any text that is close
// to a record; what the one rejects the other rejects, too.
func TestDecodeAgreesWithJSON(t *testing.T) {
	t.Parallel()
	decoder := model.NewDecoder()
	rapid.Check(t, func(t *rapid.T) {
		text, err := model.Encode(rapid.OneOf(rapid.Custom(drawPlainRecord), rapid.Custom(drawRecord)).Draw(t, "record"))
		if err != nil {
			t.Fatal(err)
		}
		agree(t, decoder, text)
		for range rapid.IntRange(0, 3).Draw(t, "slips") {
			text = slip(t, text)
		}
		agree(t, decoder, text)
	})
}

// slip takes something out of a text and puts something else in.
func slip(t *rapid.T, text []byte) []byte {
	pieces := []string{
		"", "0", "1", "-", ".5", "e1", "99999999999", `"`, `""`, `"a"`, `\\`, `\u0041`, ",", ":", "{", "}", "{}", "[]", " ", "\n",
		"null", "true", "false", `"weight":0,`, `,"exact":false`, `,"ports":{}`, `"b":1,"a":2`, `"a":"1","a":"2"`, "é", "\xff", "<", "A",
	}
	at := rapid.IntRange(0, len(text)).Draw(t, "at")
	end := min(len(text), at+rapid.SampledFrom([]int{0, 1, 1, 2, 5}).Draw(t, "taken"))
	return slices.Concat(text[:at], []byte(rapid.SampledFrom(pieces).Draw(t, "piece")), text[end:])
}

type failer interface {
	Fatalf(format string, args ...any)
}

// agree fails unless all ways to decode a text come to the same.
func agree(t failer, decoder *model.Decoder, text []byte) {
	if h, ok := t.(testing.TB); ok {
		h.Helper()
	}
	var want model.Record
	wantErr := json.Unmarshal(text, &want)
	for name, decode := range map[string]func([]byte) (model.Record, error){"alone": model.Decode, "shared": decoder.Decode} {
		input := bytes.Clone(text)
		got, err := decode(input)
		clear(input) // nothing of it is kept
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%s: %s: error %v, want %v", name, text, err, wantErr)
		}
		if err == nil && !same(got, want) {
			t.Fatalf("%s: %s\nis %s\nwant %s", name, text, show(got), show(want))
		}
	}
}

// Endpoints as registries have them, held ones included, are read and written
// by hand: encoding/json takes many times as many allocations.
func TestPlainRecordsAreCheap(t *testing.T) {
	for name, r := range map[string]model.Record{"listed": plainRecord(), "held": heldRecord()} {
		text, err := model.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		decoder := model.NewDecoder()
		read := testing.AllocsPerRun(10, func() { _, _ = decoder.Decode(text) })
		written := testing.AllocsPerRun(10, func() { text, _ = model.AppendEncoded(text[:0], r) })
		if read > 5 || written > 2 {
			t.Errorf("%s: %v allocations to read it, %v to write it: %s", name, read, written, text)
		}
	}
}

func plainRecord() model.Record {
	return model.Record{
		Ref:   model.Ref{Kind: model.KindEndpoint, Key: model.Key{Source: "legacy", Namespace: "shop", Name: "orders/10.0.0.1"}},
		Owner: model.Ref{Kind: model.KindService, Key: model.Key{Source: "legacy", Namespace: "shop", Name: "orders"}},
		UID:   model.UID{1, 2, 3}, Revision: 12, Generation: 1, Path: "isthmus",
		Spec: model.Endpoint{
			Address: "10.0.0.1", Labels: model.MapOf(map[string]string{"app": "orders", "version": "v1"}), Exact: true,
			Ports: model.MapOf(map[string]uint32{"http": 8080}), Locality: model.Locality{Region: "eu", Zone: "eu-1"}, Weight: 3,
		},
	}
}

func heldRecord() model.Record {
	r := plainRecord()
	r.Status = model.Status{LegacyHeld: "the listing lacks 60 % of the endpoints", Since: time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)}
	return r
}

// drawPlainRecord draws an endpoint of texts that stand in JSON as they are,
// most of the time.
func drawPlainRecord(t *rapid.T) model.Record {
	text := rapid.OneOf(rapid.StringMatching(`[a-z0-9./ -]{0,8}`), rapid.StringMatching(`[ -~]{0,4}`))
	labels := rapid.Map(rapid.MapOfN(text, text, 0, 3), model.MapOf[string])
	ref := rapid.Custom(func(t *rapid.T) model.Ref {
		kind := model.Kind(rapid.SampledFrom([]string{"Service", "Workload", ""}).Draw(t, "kind"))
		return model.Ref{Kind: kind, Key: model.Key{
			Source: text.Draw(t, "source"), Namespace: text.Draw(t, "namespace"), Name: text.Draw(t, "name"),
		}}
	})
	r := model.Record{
		Ref: ref.Draw(t, "ref"), UID: model.UID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uid")),
		Revision: rapid.Uint64().Draw(t, "revision"), Generation: rapid.Uint64().Draw(t, "generation"),
		Owner: rapid.OneOf(rapid.Just(model.Ref{}), ref).Draw(t, "owner"), Path: model.Path(text.Draw(t, "path")), Place: text.Draw(t, "place"),
		Status: model.Status{Stale: text.Draw(t, "stale"), LegacyHeld: text.Draw(t, "held"), Since: drawTime(t)},
	}
	r.Kind = model.KindEndpoint
	r.Spec = model.Endpoint{
		Address: text.Draw(t, "address"), Also: model.ListOf(rapid.SliceOfN(text, 0, 2).Draw(t, "also")...), Labels: labels.Draw(t, "labels"), Exact: rapid.Bool().Draw(t, "exact"),
		Ports:   model.MapOf(rapid.MapOfN(text, rapid.Uint32(), 0, 3).Draw(t, "ports")),
		Network: text.Draw(t, "network"), Node: text.Draw(t, "node"), Weight: rapid.Uint32Range(0, 2).Draw(t, "weight"), ServiceAccount: text.Draw(t, "serviceAccount"),
		Locality: model.Locality{Region: text.Draw(t, "region"), Zone: text.Draw(t, "zone"), SubZone: text.Draw(t, "subZone")},
		Health:   model.Health(text.Draw(t, "health")),
	}
	return r
}

// FuzzDecodeAgrees looks for a text of which the two ways to decode it do not
// say the same, or whose record they write differently.
func FuzzDecodeAgrees(f *testing.F) {
	for _, r := range []model.Record{plainRecord(), heldRecord(), {Ref: model.Ref{Kind: model.KindEndpoint}, Spec: model.Endpoint{}}} {
		text, err := model.Encode(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		decoder := model.NewDecoder()
		agree(t, decoder, text)
		agree(t, decoder, text) // with what it shares from the first time
		r, err := model.Decode(text)
		if err != nil {
			return
		}
		got, err := model.Encode(r)
		want, wantErr := json.Marshal(r)
		if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Fatalf("%s is encoded as\n%s, %v\nwant\n%s, %v", show(r), got, err, want, wantErr)
		}
	})
}

// What is read and written by hand, beside the same by encoding/json.
func BenchmarkPlain(b *testing.B) {
	r, decoder := plainRecord(), model.NewDecoder()
	text, err := model.Encode(r)
	if err != nil {
		b.Fatal(err)
	}
	for name, work := range map[string]func() error{
		"decode":      func() (err error) { _, err = decoder.Decode(text); return err },
		"decode-json": func() error { return json.Unmarshal(text, new(model.Record)) },
		"encode":      func() (err error) { text, err = model.AppendEncoded(text[:0], r); return err },
		"encode-json": func() (err error) { _, err = json.Marshal(r); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := work(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
