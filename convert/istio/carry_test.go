package istio_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/model"
)

// Each row of the table that can be carried is read from a file and from an API server, under
// each of its versions, and becomes the message that MCP carries.
func TestEachKindIsCarriedWithoutLoss(t *testing.T) {
	for _, d := range (istio.Carry{istio.Everything}).Definitions() {
		t.Run(d.Name, func(t *testing.T) {
			for _, version := range d.Versions() {
				for i := range 3 {
					spec := filled(t, d.Message, i)
					text := carriedManifest(t, d.Group+"/"+version, d.Name, spec)
					for form, r := range map[string]istio.Reading{"file": carriedFrom(t, text, d.Name), "API server": istio.FromJSON(text, istio.DefaultDomain)} {
						if !r.Valid() {
							t.Fatalf("%s: %v\n%s", form, r.Problems, text)
						}
						record := r.Listed("a.yaml").Record
						o, _ := record.Spec.(model.Opaque)
						got := spec.ProtoReflect().New().Interface()
						if err := proto.Unmarshal([]byte(o.Content), got); err != nil || !proto.Equal(spec, got) {
							t.Errorf("%s: %v\nis   %v\nwant %v", form, err, got, spec)
						}
						body, err := anypb.New(spec)
						if err != nil {
							t.Fatal(err)
						}
						if record.Kind != model.Kind(d.Name) || o.Type != body.GetTypeUrl() {
							t.Errorf("%s: kind %s, type %s", form, record.Kind, o.Type)
						}
						over := istio.FromResource(d, &mcpapi.Resource{
							Metadata: &mcpapi.Metadata{Name: "shop/a", Labels: map[string]string{"team": "shop"}},
							Body:     &anypb.Any{TypeUrl: o.Type, Value: []byte(o.Content)},
						})
						if !over.Valid() || over.Ref != r.Ref || !over.Spec.EqualSpec(o) {
							t.Errorf("%s: over MCP it is %+v", form, over)
						}
					}
				}
			}
		})
	}
}

func TestBadObjectOfCarriedKindIsRejectedAtItsLine(t *testing.T) {
	for _, d := range (istio.Carry{istio.Everything}).Definitions() {
		head := "apiVersion: " + d.Group + "/" + d.Version + "\nkind: " + d.Name + "\n"
		for name, test := range map[string]struct {
			text  string
			line  int
			field string
		}{
			"an unknown field":   {head + "metadata: {name: a}\nspec:\n  nosuch: 1\n", 5, "spec.nosuch"},
			"no name":            {head + "metadata: {}\nspec: {}\n", 3, "metadata.name"},
			"a bad namespace":    {head + "metadata:\n  name: a\n  namespace: A B\n", 5, "metadata.namespace"},
			"large annotations":  {head + "metadata:\n  name: a\n  annotations: {a: " + strings.Repeat("x", 1<<18) + "}\n", 5, "metadata.annotations"},
			"an unknown version": {"apiVersion: " + d.Group + "/v7\nkind: " + d.Name + "\nmetadata: {name: a}\n", 1, "apiVersion"},
		} {
			r := carriedFrom(t, []byte(test.text), d.Name)
			if len(r.Problems) != 1 || r.Problems[0].Line != test.line || r.Problems[0].Field != test.field {
				t.Errorf("%s with %s: %v", d.Name, name, r.Problems)
			}
		}
		for r := range istio.Read([]byte(head + "metadata: {name: a}\nspec: {}\n")) {
			if !r.Ignored {
				t.Errorf("%s is not ignored unless it is carried: %+v", d.Name, r)
			}
		}
	}
}

func TestCarryNamesKindsThatAreNotRead(t *testing.T) {
	all := istio.Carry{istio.Everything}.Definitions()
	for _, d := range istio.Definitions() {
		can := slices.Contains(all, d)
		if err := (istio.Carry{d.Name}).Validate(); (err == nil) != can {
			t.Errorf("carry: [%s] is %v", d.Name, err)
		}
		if !can && !d.IsRead() && strings.HasPrefix(d.Message, "istio.networking") {
			t.Errorf("%s cannot be carried: its message is not known", d.Name)
		}
	}
	for want, c := range map[string]istio.Carry{
		`carry[1]: "Gateway" is a duplicate; remove it`:                 {"Gateway", "Gateway"},
		"carry[0]: all includes every other kind; remove the others":    {"all", "Gateway"},
		"carry[0]: ServiceEntry is read in any case; remove it":         {"ServiceEntry"},
		`carry[0]: "QuotaSpec" is not a kind that can be carried; `:     {"QuotaSpec"},
		`carry[0]: "" is not a kind that can be carried; write all, or`: {""},
	} {
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", c, err)
		}
	}
}

func TestPageNamesEachKindThatCanBeCarried(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/manifests.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Kinds that are carried")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, d := range (istio.Carry{istio.Everything}).Definitions() {
		if row := regexp.MustCompile("(?m)^\\| `" + d.Group + "` \\|.*`" + d.Name + "`"); !row.MatchString(section) {
			t.Errorf("the page does not have %s of %s", d.Name, d.Group)
		}
	}
}

// carriedFrom reads the one object of a file that carries a kind.
func carriedFrom(t *testing.T, text []byte, kind string) istio.Reading {
	t.Helper()
	readings := slices.Collect(istio.ReadWithin(text, istio.Options{Carry: istio.Carry{kind}}, yamlpos.MaxMemory))
	if len(readings) != 1 {
		t.Fatalf("%d objects", len(readings))
	}
	return readings[0]
}

// quoted are the whole numbers that a message's JSON has as strings, and a cluster as numbers.
var quoted = regexp.MustCompile(`("(?:minimumRingSize|tableSize)": *)"(\d+)"`)

func carriedManifest(t *testing.T, apiVersion, kind string, spec proto.Message) []byte {
	t.Helper()
	content, err := protojson.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "a", "namespace": "shop", "labels": map[string]string{"team": "shop"}},
		"spec": json.RawMessage(quoted.ReplaceAll(content, []byte("$1$2"))),
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// filled returns a message of which every field is set, and of alternatives the one of a
// number.
func filled(t *testing.T, name string, alternative int) proto.Message {
	t.Helper()
	known, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		t.Fatal(err)
	}
	m := known.New()
	fillAll(m, alternative, 7)
	return m.Interface()
}

func fillAll(m protoreflect.Message, alternative, depth int) {
	switch known := m.Interface().(type) {
	case *durationpb.Duration:
		known.Seconds = 90
		return
	case *structpb.Struct:
		known.Fields = map[string]*structpb.Value{"a": structpb.NewNumberValue(1.5), "b": structpb.NewNullValue(), "c": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("x"), structpb.NewBoolValue(true)}})}
		return
	}
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		if one := fd.ContainingOneof(); one != nil && one.Fields().Get(alternative%one.Fields().Len()) != fd {
			continue
		}
		inner := fd.Message()
		if fd.IsMap() {
			inner = fd.MapValue().Message()
		}
		if inner != nil && depth == 0 {
			continue
		}
		switch {
		case fd.IsMap():
			key := protoreflect.ValueOfString("key").MapKey()
			if fd.MapKey().Kind() == protoreflect.Uint32Kind {
				key = protoreflect.ValueOfUint32(80).MapKey()
			}
			if inner != nil {
				fillAll(m.Mutable(fd).Map().Mutable(key).Message(), alternative, depth-1)
			} else {
				m.Mutable(fd).Map().Set(key, one(fd.MapValue()))
			}
		case fd.IsList():
			if inner != nil {
				fillAll(m.Mutable(fd).List().AppendMutable().Message(), alternative, depth-1)
			} else {
				m.Mutable(fd).List().Append(one(fd))
			}
		case inner != nil:
			fillAll(m.Mutable(fd).Message(), alternative, depth-1)
		default:
			m.Set(fd, one(fd))
		}
	}
}

// one is a value of a field that is not zero.
func one(fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("text")
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(fd.Enum().Values().Get(fd.Enum().Values().Len() - 1).Number())
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{0, 255, 7})
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(12.5)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(1 << 40)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(80)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(80)
	default:
		panic(fmt.Sprintf("%s is of kind %s", fd.FullName(), fd.Kind()))
	}
}
