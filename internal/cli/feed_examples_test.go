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
	events, rest, _ := strings.Cut(rest, "```\n")
	_, rest, _ = strings.Cut(rest, "```\n")
	shown, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("feed.md shows no events, or not as text")
	}
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
