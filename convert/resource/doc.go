// Package resource converts records to the messages of the resource API and back. No other
// package does. It does no I/O, and knows neither gRPC nor any store.
//
// [Message] and [Record] are inverse to each other, for records of every kind, with three
// exceptions:
//   - [model.Status.LegacyHeld] is not sent. Only a supervisor reads it, from an old store.
//   - [model.MergedEndpoint.ExportTo] is not sent. It equals the one of the service, and serves
//     the selection of records alone.
//   - Bytes that are not UTF-8 become U+FFFD, because a message with them cannot be encoded.
//     The content of [model.Opaque] is sent as it came.
//
// [Append] encodes a record as its message would be, and endpoints several times faster.
//
// Merged kinds have the source [model.MergedSource] in records, and none in messages. Empty
// metadata, owners, localities and times are unset in messages.
//
// Functions here share nothing and may be called from any goroutine. Messages share no memory
// that could change with records.
package resource
