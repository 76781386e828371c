package history

import (
	"path/filepath"
	"testing"

	"github.com/kuji-dev/kuji"
)

// TestNewerHistory: the history of a newer build is refused by name, and not built again over it.
func TestNewerHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	h, err := Open(t.Context(), file, "test", Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := h.db.open(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.exec(t.Context(), "UPDATE progress SET format = $1", int64(99)); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), file, "test", Options{}); kuji.CodeOf(err) != kuji.CodeFormat {
		t.Errorf("a history of a newer build: %v", err)
	}
}
