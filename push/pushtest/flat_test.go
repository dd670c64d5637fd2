package pushtest

import (
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/push"
)

// With views by identity one client of 5,000 is looked at when something of its
// identity changes, were all of them of one namespace.
func TestOneIdentityOf5000IsLookedAt(t *testing.T) {
	account := func(c push.Client) string { return c.Account }
	slot := itemSlot{place{0, "key"}, "account-7"}
	Flat(t, vault().Rows, 5000, Step{
		First: push.Update{World: stock{keyOf: account}},
		Next: push.Update{
			World:    stock{keyOf: account, items: map[itemSlot]*item{slot: {slot.place, slot.key, "secret"}}},
			Changed:  []push.Changed{{Name: slot.name, Audience: []string{slot.key}}},
			Reviewed: []string{slot.key},
		},
		Client:    func(n int) push.Client { return push.Client{Namespace: "one", Account: "account-" + strconv.Itoa(n)} },
		Concerned: 7,
	})
}
