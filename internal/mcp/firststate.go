package mcp

// MarkFirstState is the key in the metadata of a node by which a client of the delta
// variant asks, with "true", that the responses of each type's first state be marked.
const MarkFirstState = "ISTHMUS_MARK_FIRST_STATE"

// The marks of a first state. One of them is at the end of system_version_info in each
// response of it: which is the last, and which are not.
const (
	FirstStatePartial  = ";first-state=partial"
	FirstStateComplete = ";first-state=complete"
)
