package lint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/lint"
)

// git runs git in a directory.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	args = append([]string{"-C", dir, "-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"}, args...)
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// needGit skips a test where there is no git.
func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
}

// TestGoldenStays: no commit has changed what an old build wrote.
func TestGoldenStays(t *testing.T) {
	needGit(t)
	if err := exec.Command("git", "-C", "../..", "rev-parse", "--verify", "HEAD").Run(); err != nil {
		t.Skip("not a clone: nothing says what was written before")
	}
	found, err := lint.Golden("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// TestGoldenFires: a file that is changed, removed or renamed is found: in a commit, in one that a later
// commit reverts, in a merge, and before it is committed. New files and other files are not.
func TestGoldenFires(t *testing.T) {
	needGit(t)
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commit := func() {
		t.Helper()
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-q", "-m", "x")
	}
	want := func(what string, paths ...string) {
		t.Helper()
		found, err := lint.Golden(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, f.Path)
		}
		if strings.Join(got, " ") != strings.Join(paths, " ") {
			t.Errorf("%s: found %v, want %v", what, got, paths)
		}
	}
	const log, key, page = "testdata/golden/v1/log", "testdata/golden/v1/key", "testdata/golden/README.md"
	git(t, dir, "init", "-q", "-b", "main")
	put(log, "a")
	put(key, "k")
	put(page, "1")
	commit()
	put(page, "2")
	put("testdata/golden/v2/log", "b")
	commit()
	want("a new version")
	git(t, dir, "branch", "other")
	put(log, "c")
	want("not committed", log)
	commit()
	put(log, "a")
	commit()
	want("changed and taken back", log, log)
	git(t, dir, "reset", "-q", "--hard", "other")
	git(t, dir, "mv", key, "testdata/golden/v1/moved")
	want("moved", key)
	git(t, dir, "reset", "-q", "--hard", "other")
	git(t, dir, "checkout", "-q", "other")
	put("other", "x")
	commit()
	git(t, dir, "checkout", "-q", "main")
	put("main", "x")
	commit()
	want("before a merge")
	git(t, dir, "merge", "-q", "--no-commit", "other")
	put(log, "d")
	commit()
	want("in a merge", log, log)
}
