package plan

import (
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/view"
)

// planTexts says what changes about the name of the catalog, the language of its texts and its rarities.
func planTexts(p *draft, old, c *catalog.Catalog) {
	plain := len(old.Names)+len(c.Names) == 0
	if plain && old.Name != c.Name {
		p.add(realmChange("name", old.Name, c.Name, "name: %q instead of %q", c.Name, old.Name))
	}
	for _, set := range differences(catalog.DisplaysOf(old).Texts(), catalog.DisplaysOf(c).Texts()) {
		if set.Name == "name" && plain {
			continue
		}
		text := settingsText([]view.Setting{set})
		if set.Before != "" && set.After != "" {
			text = fmt.Sprintf("%s: %s", set.Name, clip(set.After)+" instead of "+clip(set.Before))
		}
		p.add(view.Change{Kind: ChangeRealm, ID: set.Name, Text: text, Settings: []view.Setting{set}})
	}
}

// maxValue is the longest value that the text of a change shows whole, in bytes.
const maxValue = 240

// clip shortens a value for the text of a change. Its settings have all of it.
func clip(value string) string {
	if len(value) <= maxValue {
		return value
	}
	end := maxValue
	for end > 0 && value[end]&0xc0 == 0x80 { // within a character
		end--
	}
	return value[:end] + "…"
}
