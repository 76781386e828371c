package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

var sabotage = flag.String("sabotage", "", "plant the bugs of testdata/sabotage whose names match this `pattern`, one by one, and see that a test fails; all: every one")

// bug is a mistake that somebody could make, as replacements of text. The file
// says in its comment what it is, and in a line "test:" what must catch it: the
// arguments of go test. Each replacement stands in a section that is named
// by the file that it changes:
//
//	<<<<
//	what stands there, once
//	====
//	what stands there instead
//	>>>>
type bug struct {
	name, about string
	test        []string
	changes     map[string][][2]string // by file
}

const sabotageDir = "testdata/sabotage"

func readBugs(t *testing.T) []bug {
	t.Helper()
	names, err := filepath.Glob(sabotageDir + "/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var bugs []bug
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		about, test, ok := strings.Cut(strings.TrimSpace(string(a.Comment)), "\ntest: ")
		if !ok || len(a.Files) == 0 {
			t.Fatalf("%s: want a line on the bug, a line test: and a change", name)
		}
		b := bug{name: strings.TrimSuffix(filepath.Base(name), ".txtar"), about: about, test: strings.Fields(test), changes: map[string][][2]string{}}
		for _, f := range a.Files {
			for part := range strings.SplitSeq(string(f.Data), "<<<<\n") {
				if part == "" {
					continue
				}
				was, rest, ok := strings.Cut(part, "====\n")
				is, _, ok2 := strings.Cut(rest, ">>>>")
				if !ok || !ok2 {
					t.Fatalf("%s: %s: want <<<<, ====, >>>>", name, f.Name)
				}
				b.changes[f.Name] = append(b.changes[f.Name], [2]string{strings.TrimSuffix(was, "\n"), strings.TrimSuffix(is, "\n")})
			}
		}
		bugs = append(bugs, b)
	}
	return bugs
}

const root = "../.."

// plant writes the changed files and an overlay that puts them in the place of
// the real ones, which stay as they are.
func (b *bug) plant(dir string) (overlay string, err error) {
	replace := map[string]string{}
	for name, changes := range b.changes {
		file, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			return "", err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		for _, c := range changes {
			if n := bytes.Count(data, []byte(c[0])); n != 1 {
				return "", fmt.Errorf("%s has this %d times, want once: write the bug anew:\n%s", name, n, c[0])
			}
			data = bytes.Replace(data, []byte(c[0]), []byte(c[1]), 1)
		}
		changed := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(changed, data, 0o600); err != nil {
			return "", err
		}
		replace[file] = changed
	}
	overlay = filepath.Join(dir, "overlay.json")
	data, err := json.Marshal(map[string]any{"Replace": replace})
	return overlay, errors.Join(err, os.WriteFile(overlay, data, 0o600))
}

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	panicked   = regexp.MustCompile(`(?m)^(panic|fatal error): (.*)$`)
)

// catch runs tests with the bug in, and returns which one failed; none when it
// survived.
func (b *bug) catch(ctx context.Context, overlay string, args ...string) (caught string, err error) {
	args = append([]string{"test", "-overlay", overlay, "-vet", "off", "-count", "1", "-failfast", "-timeout", "200s"}, args...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
		return "", fmt.Errorf("the bug does not compile:\n%s", out)
	}
	if m := failedTest.FindAllSubmatch(out, -1); m != nil {
		return string(m[len(m)-1][1]), nil // the innermost of the first that failed
	}
	if m := panicked.FindSubmatch(out); m != nil {
		return "panic: " + string(m[2][:min(40, len(m[2]))]), nil
	}
	return "", fmt.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
}

// TestSabotageFits: what the bugs replace stands in the code, so that who changes it
// hears at once which of them must be written anew.
func TestSabotageFits(t *testing.T) {
	for _, b := range readBugs(t) {
		if _, err := b.plant(t.TempDir()); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
	}
}

// TestSabotage plants bugs. One that survives means that a test is missing.
func TestSabotage(t *testing.T) {
	if *sabotage == "" {
		t.Skip("plants bugs and runs tests for each, for minutes: -sabotage all")
	}
	pattern := regexp.MustCompile(*sabotage)
	planted := 0
	var table strings.Builder
	fmt.Fprintf(&table, "%-28s  %-42s  %6s\n", "bug", "caught by", "time")
	for _, b := range readBugs(t) {
		if *sabotage != "all" && !pattern.MatchString(b.name) {
			continue
		}
		planted++
		overlay, err := b.plant(t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
			continue
		}
		began := time.Now()
		caught, err := b.catch(t.Context(), overlay, b.test...)
		took := time.Since(began)
		switch {
		case err != nil:
			t.Errorf("%s: %v", b.name, err)
			caught = "?"
		case caught == "":
			t.Errorf("%s: %s: SURVIVED go test %s", b.name, b.about, strings.Join(b.test, " "))
			caught = "SURVIVED"
		}
		row := fmt.Sprintf("%-28s  %-42s  %5.1fs", b.name, caught, took.Seconds())
		t.Log(row)
		fmt.Fprintln(&table, row)
	}
	if *sabotage == "all" && planted < 40 {
		t.Errorf("%d bugs, want at least 40", planted)
	}
	if planted == 0 {
		t.Errorf("no bug's name matches %q", *sabotage)
	}
	t.Logf("%d bugs planted\n%s", planted, table.String())
}
