package store

import (
	"os"
	"regexp"
	"testing"
)

// TestApplyErrors: the page about errors of Apply names every one, and no other.
func TestApplyErrors(t *testing.T) {
	page, err := os.ReadFile("../../docs/internals/apply-errors.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range []string{"apply.go", "names.go", "pool.go", "codes.go", "tally.go", "window.go", "order.go", "records.go"} {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code := string(src)
		for _, m := range regexp.MustCompile(`inconsistent\("((?:[^"\\]|\\.)*)"`).FindAllStringSubmatch(code, -1) {
			found[m[1]] = true
		}
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(.*?)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed[m[1]] = true
	}
	for message := range found {
		if !listed[message] {
			t.Errorf("the page lacks %q: say what keeps rules from causing it", message)
		}
	}
	for message := range listed {
		if !found[message] {
			t.Errorf("the page names %q, which is no error of Apply", message)
		}
	}
	if len(found) < 30 {
		t.Errorf("only %d errors found in the source", len(found))
	}
}
