package catalog

// Merger is a catalog that outlives the order of its sources. Where the order
// changes, end the watch and run the merger again with another watch and the
// new order: readers are given the difference between the last snapshot merged
// in the old order and the first in the new one, and none in between. It
// belongs to one goroutine.
//
// What a new order costs is what a start costs, for nearly every service may
// depend on it; services that it does not change keep their pointers unless the
// rank of one of their sources is another.
type Merger struct {
	publish   func(*Snapshot, Change)
	published *Snapshot // the last
}

// NewMerger returns a merger that has published nothing. Publish is as in [Run].
func NewMerger(publish func(*Snapshot, Change)) *Merger {
	return &Merger{publish: publish, published: Empty()}
}
