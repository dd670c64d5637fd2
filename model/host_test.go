package model_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
)

func TestHostWithin(t *testing.T) {
	t.Parallel()
	patterns := model.ListOf("api.Shop.example", "*.example.com")
	for host, want := range map[string]bool{
		"api.shop.example": true, "API.shop.example": true, "x.api.shop.example": false, "shop.example": false,
		"a.example.com": true, "a.b.Example.com": true, "*.example.com": true, "*.b.example.com": true,
		"example.com": false, "badexample.com": false, "*.com": false, "*": false, "": false,
	} {
		if got := model.HostWithin(host, patterns); got != want {
			t.Errorf("%q is within %v: %v", host, patterns, got)
		}
	}
	if !model.HostWithin("anything", model.ListOf("*")) || model.HostWithin("anything", model.List[string]{}) {
		t.Error("* stands for all, and nothing for none")
	}
}
