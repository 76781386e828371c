package plan

import (
	"fmt"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/view"
)

// itemChange says what another definition of an item does. supply is how many players hold, "" for none.
func itemChange(old, it *catalog.Item, supply string) view.Change {
	ch := view.Change{Kind: ChangeItemChanged, ID: it.ID}
	var parts []string
	if old.Name != it.Name {
		ch.Settings = append(ch.Settings, view.Setting{Name: "name", Before: old.Name, After: it.Name})
		parts = append(parts, fmt.Sprintf("renamed from %q to %q", old.Name, it.Name))
	}
	bare := func(it catalog.Item) []catalog.Setting {
		it.Name = ""
		return it.Settings()
	}
	if rules := differences(bare(*old), bare(*it)); len(rules) > 0 {
		ch.Settings = append(ch.Settings, rules...)
		parts = append(parts, settingsText(rules))
	}
	ch.Text = "item " + it.ID + ": " + strings.Join(parts, ", ")
	if old.Lasts != it.Lasts || old.Extend != it.Extend {
		ch.Text += "; " + lastingText(old, it, supply)
	}
	return ch
}

// lastingText says what becomes of units when an item lasts otherwise.
func lastingText(old, it *catalog.Item, supply string) string {
	switch {
	case old.Lasts == 0 && supply == "":
		return "nobody holds any"
	case old.Lasts == 0:
		return fmt.Sprintf("units that come from now on go after that, and the %s that players hold keep their ends, or stay if they have none", supply)
	case it.Lasts == 0:
		return "units that come from now on stay, and those that players hold keep their ends"
	}
	return "units that players hold keep their ends"
}
