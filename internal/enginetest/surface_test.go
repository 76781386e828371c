package enginetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSurface builds testdata/surface in a module of its own: what others build on has neither
// another name nor another type. What becomes part of it is added there.
func TestSurface(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// The module requires what this one does, so that nothing has to be looked for.
	mod := strings.Replace(read("go.mod"), "module github.com/kuji-dev/kuji\n", "module outside.example/surface\n", 1) +
		"\nrequire github.com/kuji-dev/kuji v0.0.0\n\nreplace github.com/kuji-dev/kuji => " + root + "\n"
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": mod, "go.sum": read("go.sum"), "surface.go": read("testdata/surface/surface.go")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("a program outside this module does not build: %v\n%s", err, out)
	}
}
