package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestManual checks that every command has a page with its flags, that two runs write the same bytes, and
// that the programs that people read it with find nothing wrong.
func TestManual(t *testing.T) {
	day := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	dirs := []string{t.TempDir(), filepath.Join(t.TempDir(), "new", "man1")}
	a := &app{getenv: func(string) string { return "" }}
	var files []string
	for _, dir := range dirs {
		if _, err := writeManual(dir, a.rootCommand(), "v1.2.3", day); err != nil {
			t.Fatal(err)
		}
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dirs[0], name))
		if err != nil {
			t.Error(err)
			return
		}
		files = append(files, filepath.Join(dirs[0], name))
		if again, err := os.ReadFile(filepath.Join(dirs[1], name)); err != nil || !bytes.Equal(page, again) {
			t.Errorf("%s: another run wrote other bytes (%v)", name, err)
		}
		text := strings.ReplaceAll(string(page), `\-`, "-")
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(text, "--"+f.Name) {
				t.Errorf("%s does not have --%s", name, f.Name)
			}
		})
		for _, want := range []string{cmd.Short, `"kuji v1.2.3"`, "2026-11-29"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", name, want)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(a.rootCommand())
	if len(files) < 80 {
		t.Errorf("%d pages: most are missing", len(files))
	}
	t.Run("mandoc", func(t *testing.T) {
		if _, err := exec.LookPath("mandoc"); err != nil {
			t.Skip("mandoc is not installed")
		}
		if out, err := exec.Command("mandoc", append([]string{"-T", "lint", "-W", "warning"}, files...)...).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestRoff checks that text which means something to troff comes out as itself.
func TestRoff(t *testing.T) {
	var p roff
	p.macro("B", `kuji "x" -f \n`)
	p.prose(".dot first\n'quote first\n\n- a list\n- of two\n\n  a  table\n\nwith 1-2")
	const want = `.B "kuji \(dqx\(dq \-f \en"
\&.dot first
\&'quote first
.PP
.nf
\- a list
\- of two
.fi
.PP
.nf
  a  table
.fi
.PP
with 1\-2
`
	if p.String() != want {
		t.Errorf("got\n%swant\n%s", p.String(), want)
	}
}

// TestBuildOf checks what a binary says of itself, by what the Go tool stamped into it.
func TestBuildOf(t *testing.T) {
	stamped := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.time", Value: "2026-11-29T18:51:30Z"}}
	for _, c := range []struct {
		what string
		info *debug.BuildInfo
		want versionJSON
	}{
		{"a release", stamped("v1.2.3", append(commit, debug.BuildSetting{Key: "vcs.modified", Value: "false"})...),
			versionJSON{Version: "v1.2.3", Commit: "0123abcd", Committed: "2026-11-29T18:51:30Z"}},
		{"files that no commit has", stamped("v1.2.3+dirty", append(commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"})...),
			versionJSON{Version: "v1.2.3+dirty", Commit: "0123abcd", Committed: "2026-11-29T18:51:30Z", Modified: true}},
		{"go install MODULE@VERSION", stamped("v1.2.3"), versionJSON{Version: "v1.2.3"}},
		{"no git", stamped("(devel)"), versionJSON{Version: "(devel)"}},
		{"no stamp", &debug.BuildInfo{}, versionJSON{Version: "(unknown)"}},
	} {
		got := buildOf(c.info)
		c.want.Go, c.want.Platform = got.Go, got.Platform
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}
