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
	if len(old.Display.Names)+len(it.Display.Names) == 0 && old.Name != it.Name {
		ch.Settings = append(ch.Settings, view.Setting{Name: "name", Before: old.Name, After: it.Name})
		parts = append(parts, fmt.Sprintf("renamed from %q to %q", old.Name, it.Name))
	}
	bare := func(it catalog.Item) []catalog.Setting {
		if len(parts) > 0 { // the name is said
			it.Name = ""
		}
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
	if old.Grows != it.Grows {
		ch.Text += "; " + growingText(old, it)
	}
	if old.Family != it.Family {
		ch.Text += "; " + familyText(old, it)
	}
	if old.Most != it.Most || old.Beyond != it.Beyond {
		ch.Text += "; " + mostText(old, it)
	}
	return ch
}

// growingText says what becomes of what has grown when an item grows otherwise.
func growingText(old, it *catalog.Item) string {
	switch {
	case it.Grows.Every == 0:
		return "players keep what has grown so far"
	case old.Grows.Every == 0:
		return "it grows from now on, for all players"
	case it.Grows.To < old.Grows.To:
		return fmt.Sprintf("players keep what has grown so far, and the interval begins again; who has more than %d keeps that, and gains none", it.Grows.To)
	}
	return "players keep what has grown so far, and the interval begins again"
}

// familyText says what another family of an item does to prices, conditions and counters.
func familyText(old, it *catalog.Item) string {
	var parts []string
	if old.Family != "" {
		parts = append(parts, old.Family+" stands for it no more")
	}
	if it.Family != "" {
		parts = append(parts, it.Family+" stands for it from now on, also for what players hold")
	}
	return strings.Join(append(parts, "what counters have counted stays"), "; ")
}

// mostText says what becomes of what players hold, and of what waits in mailboxes, when an item has another most.
func mostText(old, it *catalog.Item) string {
	var parts []string
	if it.Most > 0 && (old.Most == 0 || it.Most < old.Most) {
		parts = append(parts, "who holds more keeps it, and gets no more")
	}
	if old.Beyond.Do == catalog.BeyondMail {
		parts = append(parts, "what waits in mailboxes stays until its time")
	}
	if len(parts) == 0 {
		return "it holds for what players get from now on"
	}
	return strings.Join(parts, "; ")
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
