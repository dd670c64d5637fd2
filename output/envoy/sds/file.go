package sds

import (
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// File names the files of a secret on the Envoy's machine. As part of a cluster they
// would be read once; of a secret, an Envoy watches the files' folders, and reads
// them again when one is moved there, as Kubernetes does with its volumes.
type File string

// Slot implements [world.Subject].
func (s File) Slot() any { return s }

// Encode implements [world.Subject].
func (s File) Encode() world.Encoded {
	body := wire.Any(string(s), wire.SecretURL, wire.FileSecret(string(s)))
	return world.Encoded{Name: string(s), Version: world.VersionOf(body), Body: body}
}
