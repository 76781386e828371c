package catalog_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
)

func wantSameYAML(t rapid.TB, c *catalog.Catalog) {
	t.Helper()
	text := c.AppendYAML(nil)
	again, err := catalog.Parse(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if !bytes.Equal(again.AppendCanonical(nil), c.AppendCanonical(nil)) {
		t.Fatalf("another catalog:\n%s", text)
	}
	if twice := again.AppendYAML(nil); !bytes.Equal(twice, text) {
		t.Fatalf("written again it is\n%s\ninstead of\n%s", twice, text)
	}
}

// TestAppendYAML checks that what is written is read as the same catalog.
func TestAppendYAML(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c, err := catalog.Parse([]byte(drawCatalog(rt).yaml))
		if err != nil {
			rt.Fatal(err)
		}
		wantSameYAML(rt, c)
	})
	for _, name := range []string{"true", "007", "1e3", "0x10", "No", "y", "null", "2001-01-01", "1.5", "a"} {
		c, err := catalog.Parse([]byte(`
kuji: 1
items: {"` + name + `": {name: "\U00002028 \"\\ ' # : é"}}
pools: {"` + name + `": {price: {"` + name + `": 1}, entries: [{id: "` + name + `", weight: 1, when: {lacks: ["` + name + `"]}}, {id: z, weight: 0.10}]}}`))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wantSameYAML(t, c)
	}
}

// TestAppendYAMLOfExamples writes the examples again.
func TestAppendYAMLOfExamples(t *testing.T) {
	for _, file := range exampleFiles(t) {
		wantSameYAML(t, example(t, file))
	}
}
