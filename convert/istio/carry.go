package istio

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/model"
)

// Carry names the kinds that a source carries: kinds that are not read, and are passed on
// to control planes unchanged. [Everything] alone stands for all of them.
type Carry []string

// Everything is the word for all kinds that can be carried.
const Everything = "all"

// Definitions returns the kinds that are carried, in the order of the table. A kind that
// Istio no longer has is carried by the protocols alone: nothing else has its message.
func (c Carry) Definitions() (list []Definition) {
	for _, d := range definitions {
		if c.has(d) {
			list = append(list, d)
		}
	}
	return list
}

func (c Carry) has(d Definition) bool {
	return (slices.Contains(c, d.Name) || slices.Contains(c, Everything)) && !d.IsRead() && d.message() != nil
}

// Validate returns the faults of a setting carry.
func (c Carry) Validate() error {
	var errs []error
	for i, name := range c {
		of, _ := ByName(name)
		switch {
		case slices.Index(c, name) < i:
			errs = append(errs, fmt.Errorf("carry[%d]: %q is a duplicate; remove it", i, name))
		case name == Everything && len(c) > 1:
			errs = append(errs, fmt.Errorf("carry[%d]: %s includes every other kind; remove the others", i, Everything))
		case of.IsRead():
			errs = append(errs, fmt.Errorf("carry[%d]: %s is read in any case; remove it", i, name))
		case name != Everything && !c.has(of):
			errs = append(errs, fmt.Errorf("carry[%d]: %q is not a kind that can be carried; write %s, or some of %s", i, name, Everything, strings.Join(carriable(), ", ")))
		}
	}
	return errors.Join(errs...)
}

func carriable() (names []string) {
	for _, d := range (Carry{Everything}).Definitions() {
		names = append(names, d.Name)
	}
	return names
}

// opaqueOf returns the specification of a carried object, in the form in which MCP and
// MCP-over-xDS carry it: an encoded message. The encoding depends on the content alone.
func opaqueOf(m model.Meta, message proto.Message) model.Opaque {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		panic(err) // the message was filled from a document, with valid strings alone
	}
	return model.Opaque{Meta: m, Type: typePrefix + string(message.ProtoReflect().Descriptor().FullName()), Content: string(text)}
}

const typePrefix = "type.googleapis.com/"
