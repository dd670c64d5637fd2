package mcp

// MarkFirstState is a key in the metadata of a node. With it and the value "true", a client
// of the delta variant requests marks on the responses of each type's first state.
const MarkFirstState = "ISTHMUS_MARK_FIRST_STATE"

// The marks of a first state. Each response of the state ends its system_version_info with
// one, which distinguishes the last response from the others.
const (
	FirstStatePartial  = ";first-state=partial"
	FirstStateComplete = ";first-state=complete"
)
