package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersions builds the binary as people do, and asks it which version it is: from a commit with a tag,
// from one with changes that no commit has, and without git.
func TestVersions(t *testing.T) {
	if testing.Short() {
		t.Skip("links three binaries: left out with -short")
	}
	clone := filepath.Join(t.TempDir(), "kuji")
	if _, err := cloneOf(t.Context(), "../..", "", clone); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string {
		out, err := output(t.Context(), clone, nil, "git", args...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	head := git("rev-parse", "HEAD")
	type said struct {
		Version, Commit string
		Modified        bool
	}
	build := func(vcs string) (s said) {
		name := filepath.Join(t.TempDir(), "kuji")
		if _, err := output(t.Context(), clone, host.env(), "go", "build", "-trimpath", "-pgo=off", "-ldflags="+linkFlags, "-buildvcs="+vcs, "-o", name, "./cmd/kuji"); err != nil {
			t.Fatal(err)
		}
		out, err := output(t.Context(), clone, nil, name, "version", "--json")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	git("-c", "tag.gpgSign=false", "tag", "v1.98.7-rc.1")
	if got, want := build("true"), (said{"v1.98.7-rc.1", head, false}); got != want {
		t.Errorf("a tagged commit: %+v, want %+v", got, want)
	}
	if err := os.WriteFile(filepath.Join(clone, "LICENSE"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if got, want := build("true"), (said{"v1.98.7-rc.1+dirty", head, true}); got != want {
		t.Errorf("a changed file: %+v, want %+v", got, want)
	}
	if got, want := build("false"), (said{Version: "(devel)"}); got != want {
		t.Errorf("no git: %+v, want %+v", got, want)
	}
}
