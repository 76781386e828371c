package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/server"
)

// TestFeedExamples: docs/reference/feed.md shows events as JSON and then as tail writes them.
func TestFeedExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/feed.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	for _, of := range []string{"what nobody asked for", "rounds", "holds"} {
		events, after, _ := strings.Cut(rest, "```\n")
		_, after, _ = strings.Cut(after, "```\n")
		shown, after, ok := strings.Cut(after, "```\n")
		if !ok {
			t.Fatalf("feed.md shows no events of %s, or not as text", of)
		}
		sameEvents(t, events, shown)
		_, rest, _ = strings.Cut(after, "```json\n")
	}
}

// sameEvents compares events as JSON with what tail writes of them.
func sameEvents(t *testing.T, events, shown string) {
	t.Helper()
	var text strings.Builder
	for line := range strings.Lines(events) {
		var rec kuji.Record
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatal(err)
		}
		text.WriteString(eventText(server.Event(&rec)) + "\n")
	}
	if text.String() != shown {
		t.Errorf("feed.md shows\n%swant\n%s", shown, &text)
	}
}
