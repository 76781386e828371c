//go:build !unix

package history

import (
	"path/filepath"
	"testing"
)

// targets are the databases to test with: a function for each that returns an empty one.
func targets(*testing.T) map[string]func(t *testing.T) string {
	return map[string]func(t *testing.T) string{
		"sqlite": func(t *testing.T) string { return filepath.Join(t.TempDir(), "history", "h.db") },
	}
}
