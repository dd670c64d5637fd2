package model

import "time"

// Object is the unit that a registry changes: a record, and the records that come and
// go with it. The supervisor fills in the source's name.
type Object struct {
	Record Record
	// Owned records are named "<name of the record>/…" in the same namespace.
	Owned []Record
}

// Listing is a complete reading of Places: a stored record of one of them that is
// neither listed nor rejected is gone from the registry.
type Listing struct {
	// Places that were read; nil means the whole registry.
	Places []string
	// Removed are places that the registry itself reported as ended, one by one. An
	// example is a service that it denies by name. Their loss is no suspicious drop,
	// however large it is. A place that is merely missing, such as a file, does not
	// belong here. Nor does one of many places that disappeared together.
	Removed  []string
	Objects  []Object
	Rejected []Rejection
	// Ignored counts objects of kinds that Isthmus does not read, in the whole
	// registry, whatever the places, by kind; nil if they were not counted.
	Ignored map[string]int
	// Notices are about the whole registry, whatever the places; nil if none were
	// looked for.
	Notices []Notice
	// Observed is when the source first saw the change.
	Observed time.Time
}

// Notice reports an unexpected effect of valid data in the registry.
type Notice struct {
	Object string // for people: "consumer default//shop/web"
	Where  string // for people: the affected workloads, such as "namespace shop, labels app=web"
	Text   string // the effect, and how to avoid it
}

// Change has the changes that a registry reports object by object, or record by record.
// An object replaces the stored one of its name together with all records that one owned.
type Change struct {
	Upserts []Object
	Deletes []Ref // of objects; owned records go with them
	// OwnedUpserts are single records that are new or different, such as one endpoint
	// of a service. Each names its Owner, and is named as in an [Object]. Other
	// records of the owner stay unchanged and cost nothing. The owner is stored
	// already, or comes in the same change. Else the record is left out and the
	// source is asked to list. OwnedUpserts override equal records in Upserts.
	OwnedUpserts []Record
	// OwnedDeletes are single records that are gone while their owner stays. A record
	// that is upserted as well stays. A record that is not stored is ignored.
	OwnedDeletes []Ref
	Rejected     []Rejection
	Observed     time.Time
}

// Rejection reports that an object in the registry was not accepted. The last good
// version stays, which is the record that Ref names. If the text is too broken to
// identify an object, all stored records of Place stay that are not listed beside it.
// With a Namespace, only its records stay. A staying record moves to Place if its
// former place was read and does not contain it any more.
type Rejection struct {
	Ref       Ref    // without source; zero if unknown
	Place     string // as in [Record]
	Namespace string // without a Ref: the only namespace of the place that is concerned; empty for all
	Object    string // for people: "ServiceEntry default/reviews"; may be empty
	Where     string // for people: "shop.yaml:12"
	Field     string // for people: "spec.ports[0].number"; may be empty
	Reason    string // the fault and its remedy
	// Outside says that the object is valid, but the configuration excludes it: see
	// the field only of a source and localAddresses. The supervisor sets it.
	Outside bool
	// NoEffect says that the object is valid, is listed as well, and has no effect: Isthmus does
	// not do what it asks for.
	NoEffect bool
	// Owner is the owner of an endpoint that is rejected by itself, without source.
	// The supervisor sets it.
	Owner Ref
}
