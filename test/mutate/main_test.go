package main

import "testing"

// A row that no longer applies is found here, and not in the night.
func TestEveryRowApplies(t *testing.T) {
	if err := check("../.."); err != nil {
		t.Error(err)
	}
}
