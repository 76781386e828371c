package rules_test

import (
	"strings"
	"testing"
)

// TestPlanOfDisplays: a plan says what people will see otherwise, of everything that they see.
func TestPlanOfDisplays(t *testing.T) {
	const before = "{kuji: 1, name: {en: Shop, de: Laden}, rarities: {rare: {}}, items: {gem: {name: Gem}, ore: {}}, " +
		"pools: {wheel: {entries: [{id: x, weight: 1}]}}, counters: {wins: {}}, quests: {win: {needs: {wins: 1}}}, rounds: {duel: {ticket: {}, winner: {reward: {items: {gem: 1}}}}}}"
	for name, c := range map[string]struct{ from, to, want string }{
		"a translation":   {"gem: {name: Gem}", "gem: {name: {en: Gem, de: Stein}}", `item_changed: item gem: name {en: "Gem", de: "Stein"} instead of "Gem"`},
		"a name":          {"gem: {name: Gem}", "gem: {name: Ruby}", `item_changed: item gem: renamed from "Gem" to "Ruby"`},
		"a rarity":        {"ore: {}", "ore: {rarity: rare}", "item_changed: item ore: rarity rare"},
		"an icon":         {"ore: {}", "ore: {icon: /ore.png, description: Ore}", `item_changed: item ore: description "Ore", icon "/ore.png"`},
		"metadata":        {"ore: {}", "ore: {metadata: {a: 1.0}}", `item_changed: item ore: metadata {a: "1.0"}`},
		"a long text":     {"ore: {}", "ore: {description: " + strings.Repeat("é", 200) + "}", `item_changed: item ore: description "` + strings.Repeat("é", 119) + "…"},
		"of a pool":       {"wheel: {", "wheel: {name: {en: W, de: R}, ", `pool_changed: pool wheel: name {en: "W", de: "R"}`},
		"of a counter":    {"wins: {}", "wins: {icon: /w.png}", `counter_changed: counter wins: icon "/w.png"; it goes on from where it stands`},
		"of a quest":      {"win: {", "win: {description: Win, ", `quest_changed: quest win: description "Win"`},
		"of a round":      {"duel: {", "duel: {rarity: rare, ", "realm_changed: round duel: rarity rare"},
		"of the catalog":  {"de: Laden", "de: Markt", `realm_changed: name: {en: "Shop", de: "Markt"} instead of {en: "Shop", de: "Laden"}`},
		"rarities":        {"rare: {}", "rare: {name: Rare}, epic: {}", `realm_changed: rarities: {rare: {name: "Rare"}, epic: {}} instead of {rare: {}}`},
		"no translations": {"name: {en: Shop, de: Laden}", "name: Shop", `realm_changed: name: "Shop" instead of {en: "Shop", de: "Laden"}`},
		"a language":      {"kuji: 1", "kuji: 1, language: de", `realm_changed: language "de"` + "\n" + `realm_changed: name: {en: "Shop", de: "Laden"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.put(before)
			after := strings.Replace(before, c.from, c.to, 1)
			if name == "a language" {
				c.want, _, _ = strings.Cut(c.want, "\n") // the name has a text in each, and stays
			}
			if got := r.plan(after); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
