package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// codeNoService is the registry's error code for a service that does not exist.
const codeNoService = "400012"

// registryError is an error of the registry.
type registryError struct {
	Code    code   `json:"errorCode"`
	Message string `json:"errorMessage"`
	Detail  string `json:"detail"`
}

// Error implements error.
func (e *registryError) Error() string {
	text := clip(string(e.Code)) + " " + clip(e.Message)
	if e.Detail != "" && e.Detail != e.Message {
		text += " (" + clip(e.Detail) + ")"
	}
	return text
}

// code is an error code, which is written as a string or as a number.
type code string

// UnmarshalJSON accepts any value: an unknown form of the code must not hide the
// error.
func (c *code) UnmarshalJSON(data []byte) error {
	*c = code(bytes.Trim(data, `"`))
	return nil
}

// clip truncates text of other systems to a length for logs and tables.
func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// rejected is an answer other than success.
type rejected struct {
	status int
	cause  error
	retry  bool // another member may succeed
}

// Error implements error.
func (e *rejected) Error() string { return fmt.Sprintf("answers %d: %v", e.status, e.cause) }

// Unwrap returns the registry's own error, if there is one.
func (e *rejected) Unwrap() error { return e.cause }

// rejectedWith reads an answer other than success. Another member may succeed, unless
// the registry itself answers that the request is at fault.
func rejectedWith(status int, body []byte) error {
	var said registryError
	if unmarshal(body, &said) != nil || said.Code == "" {
		return &rejected{status, fmt.Errorf("%q", clip(strings.TrimSpace(string(body)))), status != http.StatusRequestEntityTooLarge}
	}
	return &rejected{status, &said, status >= http.StatusInternalServerError || status == http.StatusTooManyRequests}
}

// IsRejected reports whether the registry has answered with an error.
func IsRejected(err error) bool {
	_, ok := errors.AsType[*rejected](err)
	return ok
}

// IsBadRequest reports whether the registry rejects the content of a request, so that
// a part of it may be accepted.
func IsBadRequest(err error) bool {
	no, ok := errors.AsType[*rejected](err)
	return ok && (no.status == http.StatusBadRequest || no.status == http.StatusRequestEntityTooLarge)
}

// IsNoService reports whether the registry reports that a service does not exist.
func IsNoService(err error) bool {
	e, ok := errors.AsType[*registryError](err)
	return ok && e.Code == codeNoService
}

// unmarshal decodes a JSON object, and rejects any other text.
func unmarshal(body []byte, into any) error {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return fmt.Errorf("the answer is not a Service Center's: %q", clip(string(trimmed)))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer is truncated, or not a Service Center's: %w", err)
	}
	return nil
}

// fieldsOf returns the names of the fields of a JSON object, in order.
func fieldsOf(body []byte) []string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // text that is no object has none
	return slices.Sorted(maps.Keys(fields))
}

func isBare(body []byte) bool { return len(fieldsOf(body)) == 0 }

// checkAddress is the advice for an answer that no Service Center sends.
const checkAddress = "check that the address is a Service Center's, and that no proxy or gateway answers in its place"

// lacks returns the error for an answer without a required field. It names the fields
// of the answer, but no values: they may be secret.
func lacks(field string, body []byte) error {
	has := "none"
	if fields := fieldsOf(body); len(fields) > 0 {
		has = clip(strings.Join(fields, ", "))
	}
	return fmt.Errorf("the answer has no field %q (its fields: %s), so it says nothing about what is registered: %s", field, has, checkAddress)
}
