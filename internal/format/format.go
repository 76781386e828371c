// Package format says which version of everything that is written belongs to which format level,
// and how a build refuses what a newer one wrote. It is a table and an error. Each room knows its
// own bytes. Nothing that reads or writes comes in here.
package format

import "fmt"

// Level is the format level of a realm: what its log, its snapshots and its catalogs may hold. It is
// part of the realm's state. A new realm begins with Newest. In an older one, words of later levels are
// refused until an administrator finishes the upgrade. Until then, builds that know only the older
// level can go on with the realm.
type Level uint8

// First is the level of realms whose log names none: what builds up to commit d61c231 wrote.
const First Level = 1

// Newest is the highest level that this build knows.
var Newest = levels[len(levels)-1].Level

// Word is something that can be written or asked for.
type Word struct {
	Of   string // "event", "effect", "command", "block" or "catalog"
	Name string
}

// row is a level, and what realms of that level have that those of the level before do not have.
type row struct {
	Level    Level
	Snapshot uint8 // version of snapshots
	Catalog  uint8 // version of canonical catalogs that use words of this level
	Words    []Word
}

// levels is the one table of what needs which level. A change of a format adds a row, or adds to the
// last one as long as testdata/golden has no directory of it.
var levels = append([]row{
	{Level: First, Snapshot: 6, Catalog: 3},
	{Level: 2, Snapshot: 7, Catalog: 3, Words: []Word{
		{"effect", "level"},
		{"event", "upgrade"},
		{"block", "level"},
	}},
	{Level: 3, Snapshot: 7, Catalog: 3, Words: []Word{
		{"command", "set_limit"},
		{"event", "set_limit"},
	}},
	{Level: 4, Snapshot: 8, Catalog: 4, Words: []Word{
		{"effect", "order"},
		{"block", "orders"},
		{"effect", "claim"},
		{"command", "progress"},
		{"event", "progress"},
		{"command", "claim"},
		{"event", "claim"},
		{"command", "set_counter"},
		{"event", "set_counter"},
		{"event", "due"},
		{"effect", "beyond"},
		{"effect", "grow"},
		{"command", "collect"},
		{"event", "collect"},
		{"catalog", "counters"},
		{"catalog", "quests"},
		{"catalog", "price_by"},
		{"catalog", "ranked"},
		{"catalog", "day"},
		{"catalog", "seasons"},
		{"catalog", "per: month"},
		{"catalog", "lasts"},
		{"catalog", "extend"},
		{"catalog", "grows"},
		{"catalog", "family"},
		{"catalog", "most"},
	}},
	{Level: 5, Snapshot: 9, Catalog: 5, Words: []Word{
		{"effect", "hold"},
		{"effect", "release"},
		{"effect", "forfeit"},
		{"effect", "promise"},
		{"effect", "put"},
		{"effect", "drop"},
		{"effect", "place"},
		{"block", "records"},
		{"effect", "identity"},
		{"command", "link_code"},
		{"event", "link_code"},
		{"command", "link"},
		{"event", "link"},
		{"command", "unlink"},
		{"event", "unlink"},
		{"command", "merge"},
		{"event", "merge"},
		{"effect", "erase"},
		{"command", "forget"},
		{"event", "forget"},
		{"command", "block"},
		{"event", "block"},
		{"command", "open_round"},
		{"event", "open_round"},
		{"command", "join"},
		{"event", "join"},
		{"command", "settle"},
		{"event", "settle"},
		{"command", "reroll"},
		{"event", "reroll"},
		{"command", "cancel_round"},
		{"event", "cancel_round"},
		{"command", "hold"},
		{"event", "hold"},
		{"command", "confirm"},
		{"event", "confirm"},
		{"command", "cancel"},
		{"event", "cancel"},
		{"command", "reverse"},
		{"event", "reverse"},
		{"catalog", "rounds"},
		{"catalog", "purchases"},
	}},
	{Level: 6, Snapshot: 9, Catalog: 6, Words: []Word{
		{"command", "propose"},
		{"event", "propose"},
		{"event", "withdraw"},
		{"event", "approve"},
		{"catalog", "language"},
		{"catalog", "name: by language"},
		{"catalog", "description"},
		{"catalog", "rarities"},
		{"catalog", "icon"},
		{"catalog", "metadata"},
	}},
}, probe...)

// Need returns the level that a word needs: First for those that the table does not have.
func Need(of, name string) Level {
	for _, r := range levels {
		for _, w := range r.Words {
			if w.Of == of && w.Name == name {
				return r.Level
			}
		}
	}
	return First
}

// Snapshot returns the version of the snapshots of a realm of a level.
func Snapshot(l Level) uint8 { return at(l).Snapshot }

// Catalog returns the version of the canonical form of a catalog whose words need a level.
func Catalog(l Level) uint8 { return at(l).Catalog }

// at returns the row of a level, the first one of 0.
func at(l Level) row {
	r := levels[0]
	for _, next := range levels[1:] {
		if next.Level <= l {
			r = next
		}
	}
	return r
}

// NewerError says that something was written by a newer build than this one.
type NewerError struct {
	What       string // such as "snapshot"
	Got, Known uint64 // versions of its format
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s: written by a newer Kuji: format %d, this build knows up to %d", e.What, e.Got, e.Known)
}

// Newer returns a *NewerError if a version is newer than the newest that is known, nil otherwise.
func Newer(what string, got, known uint64) error {
	if got <= known {
		return nil
	}
	return &NewerError{What: what, Got: got, Known: known}
}

// LevelError says that a realm's level is too low for a word.
type LevelError struct {
	Word        Word
	Need, Level Level
}

func (e *LevelError) Error() string {
	return fmt.Sprintf("%s %q needs format level %d; the realm has level %d: finish the upgrade first, with kuji upgrade --finish", e.Word.Of, e.Word.Name, e.Need, e.Level)
}

// Allow returns a *LevelError if a level is too low for a word, nil otherwise.
func Allow(l Level, w Word) error {
	if need := Need(w.Of, w.Name); need > max(l, First) {
		return &LevelError{Word: w, Need: need, Level: max(l, First)}
	}
	return nil
}
