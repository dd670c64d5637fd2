package envoy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/golden"
)

// TestResources holds what views are given against testdata. A file has a
// comment that says what it shows, and these parts:
//
//	sources     names in merge order; optional
//	records     model records, one JSON object per line
//	mtls        the setting of that name; optional
//	proven      the addresses of the sidecars of the views, which prove an account; optional
//	KIND@NAMESPACE/TYPE   the resources a view is given; a view is asked for by naming any part of it
//	KIND@NAMESPACE/left-out   what of that it is not given, and why
func TestResources(t *testing.T) {
	t.Parallel()
	golden.Run(t, transcript)
}

// transcript returns the archive with its outputs as they are now.
func transcript(t *testing.T, in *txtar.Archive) *txtar.Archive {
	t.Helper()
	out := &txtar.Archive{Comment: in.Comment}
	var sources []string
	var events []model.Event
	var views []View
	settings := policy.New()
	var proven []string
	for _, f := range in.Files {
		switch f.Name {
		case "sources":
			sources = strings.Fields(string(f.Data))
			out.Files = append(out.Files, f)
		case "records":
			events = upserts(t, f.Data)
			out.Files = append(out.Files, f)
		case "mtls":
			if err := json.Unmarshal(f.Data, &settings.MTLS); err != nil {
				t.Fatal(err)
			}
			out.Files = append(out.Files, f)
		case "proven":
			proven = strings.Fields(string(f.Data))
			out.Files = append(out.Files, f)
		default:
			views = appendView(t, views, f.Name)
		}
	}
	builder := catalog.NewBuilder(sources)
	builder.Apply(1, events)
	w := worldUnder(settings.Prepare(), builder.Snapshot(), true, "istio-system", nil)
	for _, v := range views {
		out.Files = append(out.Files, viewed(t, w, v, proven)...)
	}
	return out
}

// owned returns an endpoint as one of the service that tests name before it.
func owned(r model.Record) model.Record {
	if r.Kind == model.KindEndpoint {
		r.Owner = model.Ref{Kind: model.KindService, Key: r.Key}
		r.Owner.Name, _, _ = strings.Cut(r.Name, "/")
	}
	return r
}

func upserts(t *testing.T, lines []byte) []model.Event {
	t.Helper()
	var events []model.Event
	for line := range bytes.Lines(lines) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		record, err := model.Decode(line)
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		events = append(events, model.Upsert{Record: owned(record)})
	}
	return events
}

func appendView(t *testing.T, views []View, part string) []View {
	t.Helper()
	name, _, _ := strings.Cut(part, "/")
	kind, namespace, ok := strings.Cut(name, "@")
	if !ok {
		t.Fatalf("part %q is not of a view", part)
	}
	v := View{Kind: kind, Namespace: namespace}
	if len(views) > 0 && views[len(views)-1] == v {
		return views
	}
	return append(views, v)
}

// viewed returns everything a view is given. Types of which it gets nothing
// are absent.
func viewed(t *testing.T, w *World, like View, proven []string) []txtar.File {
	t.Helper()
	var files []txtar.File
	v := like
	for typ, label := range []string{"clusters", "assignments", "listeners", "routes"} {
		var data []byte
		if proven != nil {
			c := provenAt(proven...)
			c.Kind, c.Namespace = like.Kind, like.Namespace
			v = of(w.View(world.Row(typ), c))
		}
		for name := range w.Names(v, world.Row(typ)) {
			subject, ok := w.Find(v, world.Row(typ), name)
			if !ok {
				t.Fatalf("%s is named and not found", name)
			}
			data = append(data, readable(t, subject.Encode().Joined().Body)...)
		}
		if len(data) > 0 {
			files = append(files, txtar.File{Name: v.Kind + "@" + v.Namespace + "/" + label, Data: data})
		}
	}
	return append(files, txtar.File{Name: v.Kind + "@" + v.Namespace + "/left-out", Data: leftOut(w.snapshot, like)})
}

func leftOut(snapshot *catalog.Snapshot, v View) []byte {
	var b bytes.Buffer
	for s := range snapshot.Visible(catalog.Viewer{Namespace: v.Namespace}) {
		if reason := reach.NotOffered(s, v.Kind); reason != "" {
			fmt.Fprintf(&b, "%s: %s\n", s.Key, reason)
		}
		for id, reason := range reach.Unserved(s, nil) {
			fmt.Fprintf(&b, "%s port %d: %s port %d: %s\n", s.Key, id.ServicePort, id.Address, id.Port, reason)
		}
	}
	return b.Bytes()
}

// readable returns a resource as JSON. The white space of protojson is random
// on purpose, so it is set anew.
func readable(t *testing.T, body []byte) []byte {
	t.Helper()
	text, err := protojson.Marshal(message(t, body))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", " "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// message reads a resource as clients do.
func message(t interface{ Fatal(...any) }, body []byte) proto.Message {
	var outer anypb.Any
	if err := proto.Unmarshal(body, &outer); err != nil {
		t.Fatal(err)
	}
	m, err := outer.UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	return m
}
