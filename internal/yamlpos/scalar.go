package yamlpos

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scalar fills n from a YAML scalar, by Kubernetes' rules: the rules of YAML 1.1, where a
// bare yes is a boolean and a date is a string.
func (b *builder) scalar(n *Node, y *yaml.Node) {
	switch tag := y.ShortTag(); tag {
	case "!!str", "!!timestamp", "!!merge":
		n.kind, n.text = String, y.Value
		if value, ok := oldBool(y); ok {
			n.kind, n.text = Bool, value
		}
	case "!!null":
	case "!!bool":
		n.kind, n.text = Bool, strings.ToLower(y.Value)
		if n.text != "true" && n.text != "false" {
			n.fault(strconv.Quote(y.Value) + " is not a boolean: write true or false")
		}
	case "!!int", "!!float":
		var ok bool
		if n.text, ok = number(y); !ok {
			n.fault(strconv.Quote(y.Value) + " is not a number that JSON knows: quote it if it is meant as a string")
			return
		}
		n.kind = Number
	default:
		n.fault("tag " + tag + " means nothing here: remove it")
	}
}

// oldBool recognises the booleans of YAML 1.1 beside true and false.
func oldBool(y *yaml.Node) (string, bool) {
	if y.Style != 0 || len(y.Value) > 3 {
		return "", false
	}
	switch y.Value {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return "true", true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return "false", true
	}
	return "", false
}

// number returns a YAML number in JSON's form: unchanged if possible.
func number(y *yaml.Node) (string, bool) {
	if s := y.Value; s != "" && (s[0] == '-' || '0' <= s[0] && s[0] <= '9') && json.Valid([]byte(s)) {
		return s, true
	}
	var i int64
	if y.Decode(&i) == nil && y.ShortTag() == "!!int" {
		return strconv.FormatInt(i, 10), true
	}
	var u uint64
	if y.Decode(&u) == nil && y.ShortTag() == "!!int" {
		return strconv.FormatUint(u, 10), true
	}
	var f float64
	if y.Decode(&f) != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return "", false
	}
	text, err := json.Marshal(f)
	return string(text), err == nil
}

// key returns the name and line of a map's entry, or why it is invalid.
func (b *builder) key(y *yaml.Node) (key Key, reason string) {
	key.Line = b.line(y)
	if y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	if y.Kind != yaml.ScalarNode {
		return key, "a map or a list cannot be a key: use a string"
	}
	switch y.ShortTag() {
	case "!!null":
		return key, "a key is missing before the colon: write one"
	case "!!int", "!!float":
		text, ok := number(y)
		if !ok {
			text = y.Value
		}
		key.Name = text
	default:
		key.Name = y.Value
	}
	return key, ""
}
