package pushtest

import (
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// With views by identity one client of 5,000 is looked at when something of its
// identity changes, were all of them of one namespace.
func TestOneIdentityOf5000IsLookedAt(t *testing.T) {
	account := func(c world.Client) string { return c.Account }
	slot := itemSlot{place{0, "key"}, "account-7"}
	Flat(t, vault().Rows, 5000, Step{
		First: world.Update{World: stock{keyOf: account}},
		Next: world.Update{
			World:    stock{keyOf: account, items: map[itemSlot]*item{slot: {slot.place, slot.key, "secret"}}},
			Changed:  []world.Changed{{Name: slot.name, Audience: []string{slot.key}}},
			Reviewed: []string{slot.key},
		},
		Client:    func(n int) world.Client { return world.Client{Namespace: "one", Account: "account-" + strconv.Itoa(n)} },
		Concerned: 7,
	})
}
