package mcp

import (
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// encoded is a resource with a name and a version, whatever their bytes.
func encoded(name, version string) []byte {
	var metadata []byte
	metadata = protowire.AppendString(protowire.AppendTag(metadata, fieldMetadataName, protowire.BytesType), name)
	metadata = protowire.AppendString(protowire.AppendTag(metadata, fieldMetadataVersion, protowire.BytesType), version)
	return protowire.AppendBytes(protowire.AppendTag(nil, fieldMetadata, protowire.BytesType), metadata)
}

// A request and a NACK are messages whose texts are valid UTF-8. So a name that is not cannot be
// held, a version that is not cannot be resumed from, and a reason is cut between characters.
func TestTextsForRequestsAreValidUTF8(t *testing.T) {
	t.Parallel()
	if name, _, err := identityOf(encoded("shop/\xff", "1")); len(name) > 0 || err == nil || !strings.Contains(err.Error(), "metadata.name is not valid UTF-8") {
		t.Errorf("the name %q is taken, and the error is %v", name, err)
	}
	if name, version, err := identityOf(encoded("shop/cart", "\xff")); string(name) != "shop/cart" || len(version) > 0 || err != nil {
		t.Errorf("the name is %q, the version %q, the error %v", name, version, err)
	}
	if name, version, err := identityOf(encoded("shop/ö", "1")); string(name) != "shop/ö" || string(version) != "1" || err != nil {
		t.Errorf("the name is %q, the version %q, the error %v", name, version, err)
	}
	for _, long := range []string{"x" + strings.Repeat("ö", mostShown), "bad \xff name"} {
		if short := cut(long); !utf8.ValidString(short) || len(short) > mostShown || len(short) < 8 {
			t.Errorf("%d bytes of %d are left, valid: %t", len(short), len(long), utf8.ValidString(short))
		}
	}
}
