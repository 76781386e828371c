package enginetest

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver/drivertest"
)

// feedExample is what the page shows of a record.
type feedExample struct {
	Kind    string               `json:"kind"`
	Status  string               `json:"status"`
	Player  string               `json:"player,omitempty"`
	Items   []kuji.Stack         `json:"items,omitempty"`
	Due     *kuji.Due            `json:"due,omitempty"`
	Claims  []kuji.Claimed       `json:"claims,omitempty"`
	Beyond  []kuji.Beyond        `json:"beyond,omitempty"`
	Changes []kuji.BalanceChange `json:"changes,omitempty"`
}

// TestFeedExamples: the events that docs/reference/feed.md shows of what nobody asked for are those of the engine.
func TestFeedExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/feed.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(page), "```json\n")
	block, _, ends := strings.Cut(block, "```")
	if !ok || !ends {
		t.Fatal("feed.md shows no events")
	}
	now := handAt(time.Date(2026, 11, 28, 22, 0, 0, 0, time.UTC))
	_, r := openAt(t, drivertest.NewShared(drivertest.SharedOptions{}), 1, kuji.Options{Now: now.Now})
	if _, err := r.Apply(t.Context(), parse(t, `
kuji: 1
items: {gem: {most: 10, beyond: {mail: 5h}}, ticket: {lasts: 3h}}
counters: {points: {per: day, ranked: {rewards: [{to: 1, reward: {items: {gem: 5}}}]}}}
`)); err != nil {
		t.Fatal(err)
	}
	do(t, r, kuji.Grant{Player: "ann", Items: stacksOf("12 gem, 2 ticket")})
	points(t, r, "bob", 7)
	for range 3 {
		now.Add(2 * time.Hour)
		do(t, r, kuji.Register{Player: "ann"}) // settles what is due
		paidRanks(t, r, 1)
	}
	var lines []string
	for _, rec := range paidRanks(t, r, 1) {
		if rec.Kind != "grant" && rec.Kind != "due" {
			continue
		}
		if rec.Due != nil {
			rec.Due.Swept = false // what a command waits for is not swept
		}
		line, err := json.Marshal(feedExample{rec.Kind, rec.Status, rec.Player, rec.Items, rec.Due, rec.Claims, rec.Beyond, rec.Changes})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	var shown []string
	for line := range strings.Lines(block) {
		shown = append(shown, strings.TrimSpace(line))
	}
	if !slices.Equal(shown, lines) {
		t.Errorf("feed.md shows\n%s\nwant\n%s", strings.Join(shown, "\n"), strings.Join(lines, "\n"))
	}
}
