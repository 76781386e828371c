package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// TestContextsAreReplaced: a new file takes the place of the old one. Nothing is
// written into the old one, which a crash could leave half done, and nothing else
// is left behind.
func TestContextsAreReplaced(t *testing.T) {
	a := &app{configDir: t.TempDir()}
	first := &contexts{Current: "a", Contexts: map[string]serverContext{"a": {Server: "http://a:1"}}}
	if err := saveContexts(a, first); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(contextsFile(a))
	if err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(t.TempDir(), "old")
	if err := os.Link(contextsFile(a), old); err != nil {
		t.Skip("no hard links here:", err)
	}
	if err := saveContexts(a, &contexts{}); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(old); err != nil || string(after) != string(before) {
		t.Errorf("the old file is now %q, %v", after, err)
	}
	if all, err := loadContexts(a); err != nil || all.Current != "" || len(all.Contexts) != 0 {
		t.Errorf("read %+v, %v; want none", all, err)
	}
	if files, err := os.ReadDir(filepath.Dir(contextsFile(a))); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v; want one", files, err)
	}
}
