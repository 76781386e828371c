package chat_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/chat"
)

var block = regexp.MustCompile("(?s)```yaml (\\w+)\n(.*?)```")

// TestPage does what the page about chats says.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../docs/how-to/chat.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	for _, m := range block.FindAllStringSubmatch(string(page), -1) {
		blocks[m[1]] = m[2]
	}
	c, err := chat.Parse([]byte(blocks["chat"]))
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, realmOf(t, "", kuji.Options{}, blocks["catalog"]), *c)
	r.says(r.write("ann", 0, "hello"), "")
	r.says(r.write("ann", 0, "I look around"), "search started ok")
	r.says(r.write("ann", 29*time.Second, "!SEARCH"), "search cooling 30s")
	r.says(r.write("ann", 0, "!buy blade 2"), "buy started ok")
	r.says(r.write("ann", 0, "!buy shield"), "buy started ok")
	r.says(r.write("ann", 0, "!buy house"), "buy unclear item")
	r.says(r.write("ann", 0, "!sell shield"), "sell started ok")
	r.says(r.write("ann", 0, "!reward"), "reward started not_reached")
	r.says(r.write("ben", 0, "!giveaway !join 2"), "giveaway started ok, join started ok")
	r.says(r.write("ann", 0, "!giveaway"), "giveaway cooling 10m0s")
}
