//go:build unix

package history

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kuji-dev/kuji/internal/pgtest"
)

// targets are the databases to test with: a function for each that returns an empty one.
func targets(t *testing.T) map[string]func(t *testing.T) string {
	return map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "history", "h.db") },
		"postgres": func(t *testing.T) string { return pgtest.Database(t) },
	}
}

func TestMain(m *testing.M) {
	if file := os.Getenv("KUJI_HISTORY_CHILD"); file != "" {
		runChild(file)
		return
	}
	m.Run()
	pgtest.Stop()
}
