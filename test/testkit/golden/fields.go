package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Fields writes a JSON object with a line for each of its fields, in the order of
// their names. Two of them are compared line by line, whatever the white space
// they were written with.
func Fields(object []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("{\n")
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "%q: ", name)
		if err := json.Compact(&b, fields[name]); err != nil {
			return nil, err
		}
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}
