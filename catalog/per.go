package catalog

import (
	"cmp"
	"fmt"
	"slices"
)

// everyPer are the periods of limits, budgets, free draws and guesses. Each of these has some of them.
var everyPer = append(choiceShape[Per]{{"hour", PerHour, "The hour, in the catalog's zone."}}, perWords...)

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
