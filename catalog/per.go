package catalog

import (
	"cmp"
	"fmt"
	"slices"
)

// The periods. Limits, budgets, free draws, guesses, counters and quests have some of them each.
var (
	foreverWord = choice[Per]{"forever", PerForever, "All time."}
	hourWord    = choice[Per]{"hour", PerHour, "The hour, in the catalog's zone."}
	dayWord     = choice[Per]{"day", PerDay, "The calendar day, in the catalog's zone."}
	weekWord    = choice[Per]{"week", PerWeek, "The week, in the catalog's zone. It begins on Monday, unless day says otherwise."}
	monthWord   = choice[Per]{"month", PerMonth, "The calendar month, in the catalog's zone."}
	windowWord  = choice[Per]{"window", PerWindow, "The time just past, of the length window."}
	seasonWord  = choice[Per]{"season", PerSeason, "The season that runs."}
)

// everyPer are all of them.
var everyPer = choiceShape[Per]{hourWord, foreverWord, dayWord, weekWord, monthWord, windowWord, seasonWord}

// String returns the period's name.
func (p Per) String() string {
	return cmp.Or(everyPer.write(1, &p), fmt.Sprintf("per(%d)", uint8(p)))
}

// MarshalText makes JSON name the period.
func (p Per) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (p *Per) UnmarshalText(text []byte) error {
	i := slices.Index(everyPer.words(), string(text))
	if i < 0 {
		return fmt.Errorf("catalog: %.20q is no period", text)
	}
	*p = everyPer[i].value
	return nil
}
