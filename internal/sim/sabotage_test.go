package sim_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	sabotage = flag.String("sabotage", "", "plant bugs of testdata/sabotage, and see that a test fails for each; all: every one; changed: new and changed ones, those in files that changed, and a sample; else those whose names match this `pattern`")
	sample   = flag.Int("sample", 20, "with -sabotage changed: how many bugs in other files")
	most     = flag.Int("most", 24, "with -sabotage changed: at most how many bugs; half as many again, if they are new")
	picked   = flag.Uint64("sabotage-seed", 0, "with -sabotage changed: the seed of the sample; 0: the hash of HEAD")
)

const root = "../.."

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	panicked   = regexp.MustCompile(`(?m)^(panic|fatal error): (.*)$`)
)

// catch runs tests with the bug in, and returns the one that failed, "" if the bug survived.
func (b *bug) catch(ctx context.Context, overlay string) (caught string, err error) {
	args := append([]string{"test", "-vet", "off", "-count", "1", "-failfast", "-timeout", "200s"}, b.test...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	// By the environment, so that a test that builds the binary builds it with the bug.
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil && bytes.Contains(out, []byte("[no tests to run]")):
		return "", fmt.Errorf("go %s: no test has that name", strings.Join(args, " "))
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

var testName = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testsThere reports whether the bug's -run matches a test of its packages.
func (b *bug) testsThere(tests map[string][]string) bool {
	run := regexp.MustCompile("")
	if i := slices.Index(b.test, "-run"); i >= 0 {
		pattern, _, _ := strings.Cut(b.test[i+1], "/")
		run = regexp.MustCompile(pattern)
	}
	for _, dir := range b.test {
		if !strings.HasPrefix(dir, ".") {
			continue
		}
		if tests[dir] == nil {
			files, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
			for _, file := range files {
				data, _ := os.ReadFile(file)
				for _, m := range testName.FindAllSubmatch(data, -1) {
					tests[dir] = append(tests[dir], string(m[1]))
				}
			}
		}
		if slices.ContainsFunc(tests[dir], run.MatchString) {
			return true
		}
	}
	return false
}

// TestSabotageFits: every bug says which promise it breaks, fits into today's code, compiles, and names
// tests that exist.
func TestSabotageFits(t *testing.T) {
	s := newSources(root)
	c, err := newChecker(root)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string][]string{} // the names of a folder's tests
	for _, b := range readBugs(t) {
		p, err := s.plant(b)
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
		} else if err := c.check(s, p); err != nil {
			t.Errorf("%s does not compile: %v", b.name, err)
		}
		if !b.testsThere(tests) {
			t.Errorf("%s: no test has a name that go test %s asks for", b.name, strings.Join(b.test, " "))
		}
		for _, note := range p.notes {
			t.Logf("%s: %s", b.name, note)
		}
	}
}

// TestSabotage plants bugs. One that survives means that a test is missing.
func TestSabotage(t *testing.T) {
	if *sabotage == "" {
		t.Skip("plants bugs and runs tests for each, for minutes: -sabotage all")
	}
	s := newSources(root)
	var bugs []planted
	for _, b := range readBugs(t) {
		p, err := s.plant(b)
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
			continue
		}
		bugs = append(bugs, p)
	}
	if *sabotage == "all" && len(bugs) < 100 {
		t.Errorf("%d bugs, want at least 100", len(bugs))
	}
	bugs = selectBugs(t, bugs)
	if len(bugs) == 0 {
		t.Errorf("no bug's name matches %q", *sabotage)
	}
	var mu sync.Mutex
	rows := map[string]string{}
	t.Run("bugs", func(t *testing.T) {
		for _, p := range bugs {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(p.needs); p.needs != "" && err != nil {
					t.Skipf("its test cannot run here: %v", err)
				}
				began := time.Now()
				caught := mustCatch(t, p)
				mu.Lock()
				defer mu.Unlock()
				key, _, _ := strings.Cut(p.promise, ",")
				rows[p.name] = fmt.Sprintf("%-28s  %-6s  %-42s  %5.1fs", p.name, key, caught, time.Since(began).Seconds())
				t.Log(rows[p.name])
			})
		}
	})
	table := []string{fmt.Sprintf("%-28s  %-6s  %-42s  %6s", "bug", "breaks", "caught by", "time")}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		table = append(table, rows[name])
	}
	t.Logf("%d bugs planted\n%s", len(bugs), strings.Join(table, "\n"))
}

func mustCatch(t *testing.T, p planted) string {
	overlay, err := p.overlay(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	caught, err := p.catch(t.Context(), overlay)
	switch {
	case err != nil:
		t.Error(err)
		return "?"
	case caught == "":
		t.Errorf("%s SURVIVED go test %s", p.about, strings.Join(p.test, " "))
		return "SURVIVED"
	}
	return caught
}

// selectBugs returns the bugs that -sabotage asks for. If it selects by what changed, it logs how to
// repeat that and what it leaves out.
func selectBugs(t *testing.T, bugs []planted) []planted {
	if *sabotage == "all" {
		return bugs
	}
	if *sabotage != "changed" {
		pattern := regexp.MustCompile(*sabotage)
		return slices.DeleteFunc(bugs, func(p planted) bool { return !pattern.MatchString(p.name) })
	}
	c := changesSince(t, baseCommit(t))
	seed := *picked
	if seed == 0 {
		head, _ := git("rev-parse", "HEAD")
		seed, _ = strconv.ParseUint(head[:min(15, len(head))], 16, 64)
	}
	chosen, left := choose(bugs, c, *sample, *most, seed)
	t.Logf("%d files changed since %s; %d bugs, %d planted, chosen by -sabotage-seed %d", len(c.files), c.base, len(bugs), len(chosen), seed)
	t.Logf("left to make nightly: %s", strings.Join(names(left), " "))
	return chosen
}

// choose takes the bugs that are new, up to half as many again as most. Up to most in all, it adds those whose
// entries changed, those in other files that changed, and a sample of the rest. If nobody knows what
// changed, all of it is a sample.
func choose(bugs []planted, c changes, sample, most int, seed uint64) (chosen, left []planted) {
	bugs = slices.Clone(bugs)
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(bugs), func(i, j int) { bugs[i], bugs[j] = bugs[j], bugs[i] })
	if c.files == nil {
		sample = most
	}
	slices.SortStableFunc(bugs, func(a, b planted) int { return cmp.Compare(c.rank(a), c.rank(b)) })
	for _, p := range bugs {
		rank := c.rank(p)
		take := len(chosen) < most || rank == newEntry && len(chosen) < most+most/2
		if rank == untouched {
			take = take && sample > 0
			sample--
		}
		if take {
			chosen = append(chosen, p)
		} else {
			left = append(left, p)
		}
	}
	return chosen, left
}

// changes are the files that differ from those of a commit.
type changes struct {
	base  string          // the commit; "" if none is known
	files map[string]bool // whether each one is new; nil without a commit
}

// What a change has to do with a bug, the nearest first.
const (
	newEntry = iota
	changedEntry
	changedFile // a file that the bug is planted in
	untouched
)

func (c changes) rank(p planted) int {
	if isNew, ok := c.files[sabotagePath(p.name)]; ok && isNew {
		return newEntry
	} else if ok {
		return changedEntry
	}
	abs, _ := filepath.Abs(root)
	for path := range p.changed {
		if rel, err := filepath.Rel(abs, path); err == nil {
			if _, ok := c.files[rel]; ok {
				return changedFile
			}
		}
	}
	return untouched
}

func sabotagePath(name string) string {
	return filepath.Join("internal/sim", sabotageDir, name+".txtar")
}

func names(bugs []planted) []string {
	var names []string
	for _, p := range bugs {
		names = append(names, p.name)
	}
	slices.Sort(names)
	return names
}

func git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// baseCommit returns the commit before the change, as .ci/base finds it, "" if it finds none.
func baseCommit(t *testing.T) string {
	out, err := exec.Command(filepath.Join(root, ".ci/base")).Output()
	if err != nil {
		t.Logf(".ci/base: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// changesSince returns the files that differ from those of a commit, and those that git does not
// know yet.
func changesSince(t *testing.T, base string) changes {
	if base == "" {
		return changes{}
	}
	diff, err := git("diff", "--name-status", "--no-renames", base)
	if err != nil {
		t.Logf("git diff %s: %v", base, err)
		return changes{}
	}
	others, err := git("ls-files", "--others", "--exclude-standard")
	if err != nil {
		t.Logf("git ls-files: %v", err)
	}
	c := changes{base, map[string]bool{}}
	for line := range strings.Lines(diff) {
		fields := strings.Fields(line) // a letter and a name
		c.files[fields[1]] = fields[0] == "A"
	}
	for _, name := range strings.Fields(others) {
		c.files[name] = true
	}
	return c
}
