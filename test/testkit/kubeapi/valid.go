package kubeapi

import (
	"fmt"
	"net/http"
)

// invalid says what Istio's schema does not allow in an object that may be the
// outcome of a merge; nil if it allows everything.
func invalid(at string, o Object) *Rejection {
	if o["kind"] != "ServiceEntry" {
		return nil
	}
	spec, _ := o["spec"].(Object)
	_, selects := spec["workloadSelector"]
	_, lists := spec["endpoints"]
	switch {
	case twice(spec["ports"], "name"):
		return unprocessable(at, "spec.ports", "Duplicate value")
	case twice(spec["ports"], "number"):
		return unprocessable(at, "spec.ports", "port number cannot be duplicated")
	case selects && lists:
		return unprocessable(at, "spec", "only one of WorkloadSelector or Endpoints can be set")
	case lists && spec["resolution"] == "NONE":
		return unprocessable(at, "spec", "NONE mode cannot set endpoints")
	}
	return nil
}

// twice reports whether two of a list have one value of a field.
func twice(list any, field string) bool {
	items, _ := list.([]any)
	seen := map[string]bool{}
	for _, item := range items {
		fields, _ := item.(Object)
		value := fmt.Sprint(fields[field])
		if seen[value] {
			return true
		}
		seen[value] = true
	}
	return false
}

func unprocessable(at, field, message string) *Rejection {
	return &Rejection{Code: http.StatusUnprocessableEntity, Reason: "Invalid", Message: at + " is invalid: " + field + ": " + message, Field: field}
}
