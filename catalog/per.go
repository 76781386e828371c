package catalog

import "fmt"

// perTexts are the names of periods. Those of limits also have PerWindow.
var perTexts = [...]string{PerForever: "forever", PerDay: "day", PerWeek: "week", PerWindow: "window", PerHour: "hour"}

// String returns the period's name.
func (p Per) String() string {
	if int(p) < len(perTexts) && perTexts[p] != "" {
		return perTexts[p]
	}
	return fmt.Sprintf("per(%d)", uint8(p))
}

// MarshalText makes JSON name the period.
func (p Per) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (p *Per) UnmarshalText(text []byte) error {
	for i, word := range perTexts {
		if word != "" && word == string(text) {
			*p = Per(i)
			return nil
		}
	}
	return fmt.Errorf("catalog: %.20q is no period", text)
}
