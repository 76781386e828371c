package sim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const plantBug = `A bug.
promise: 1, that it is found
test: .
-- room.Log.flush --
<<<<
if $err := $f.Sync(); $err != nil {
====
if $err := $f.Sync(); $err != nil && false {
>>>>
`

// TestPlant: a bug survives what changes around it, and says when it does not.
func TestPlant(t *testing.T) {
	const flush = "func (l *Log) flush() error {\n\tif err := l.file.Sync(); err != nil {\n\t\treturn err\n\t}\n\treturn nil\n}\n"
	other := func(name string) string { return strings.ReplaceAll(flush, "flush", name) }
	tests := []struct {
		name         string
		files        []string
		want, refuse string
	}{
		{name: "as it was", files: []string{flush}, want: "l.file.Sync(); err != nil && false {"},
		{name: "other names", files: []string{strings.NewReplacer("err", "failed", "l.", "log.").Replace(flush)},
			want: "if failed := log.file.Sync(); failed != nil && false {"},
		{name: "other spaces", files: []string{strings.Replace(flush, "err != nil", "err  !=\n nil", 1)}, want: "&& false"},
		{name: "another file", files: []string{"", flush}, want: "&& false"},
		{name: "another function has the same", files: []string{flush, other("close")}, want: "&& false"},
		{name: "the function has a new name", files: []string{other("sync")}, want: "func (l *Log) sync() error {\n\tif err := l.file.Sync(); err != nil && false"},
		{name: "a value receiver of a generic type", files: []string{strings.Replace(flush, "*Log", "Log[T]", 1)}, want: "&& false"},
		{name: "another function has a like one", files: []string{strings.Replace(flush, "err != nil", "other != nil", 1)}, refuse: "this 0 times"},
		{name: "two functions could be it", files: []string{other("a") + other("b")}, refuse: "there: false) has this 0 times, its package 2 times"},
		{name: "twice within", files: []string{flush[:len(flush)-2] + "\tif e := l.dir.Sync(); e != nil {}\n}\n"}, refuse: "this 2 times"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "room")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for i, text := range test.files {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.go", i)), []byte("package room\n\n"+text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			b, err := parseBug("a-bug", []byte(plantBug))
			if err != nil {
				t.Fatal(err)
			}
			p, err := newSources(root).plant(b)
			if test.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), test.refuse) {
					t.Fatalf("got %v, want an error with %q", err, test.refuse)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range p.changed {
				if !strings.Contains(text, test.want) {
					t.Errorf("got\n%s\nwant in it\n%s", text, test.want)
				}
			}
		})
	}
}

// TestBugSaysWhatItBreaks: a file without a promise is refused.
func TestBugSaysWhatItBreaks(t *testing.T) {
	for _, change := range []string{"", "promise: 1\n", "promise: 99, that it is found\n"} {
		text := strings.Replace(plantBug, "promise: 1, that it is found\n", change, 1)
		if _, err := parseBug("a-bug", []byte(text)); err == nil {
			t.Errorf("this was taken:\n%s", text)
		}
	}
}

// TestChoose: new bugs come first and all of them, then those that changed, those in changed files
// and a sample of the others. There are no more than the most, and none is forgotten.
func TestChoose(t *testing.T) {
	abs, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	var bugs []planted
	for i := range 50 {
		bugs = append(bugs, planted{
			bug:     &bug{name: fmt.Sprint("bug", i)},
			changed: map[string]string{filepath.Join(abs, fmt.Sprintf("f%d.go", i%10)): ""},
		})
	}
	entries := func(from, to int) (files []string) {
		for i := from; i < to; i++ {
			files = append(files, sabotagePath(fmt.Sprint("bug", i)))
		}
		return files
	}
	sources := func(n int) (files []string) {
		for i := range n {
			files = append(files, fmt.Sprintf("f%d.go", i))
		}
		return files
	}
	for _, test := range []struct {
		isNew, changed []string
		unknown        bool
		want           [4]int // how many are chosen: new, changed, near, untouched
	}{
		{unknown: true, want: [4]int{0, 0, 0, 40}},
		{changed: []string{"other.go"}, want: [4]int{0, 0, 0, 20}},
		{changed: sources(1), want: [4]int{0, 0, 5, 20}},
		{isNew: sources(1), want: [4]int{0, 0, 5, 20}},
		{changed: append(sources(1), entries(2, 3)...), want: [4]int{0, 1, 5, 20}},
		{isNew: entries(0, 1), changed: append(sources(1), entries(2, 3)...), want: [4]int{1, 1, 4, 20}},
		{changed: sources(5), want: [4]int{0, 0, 25, 15}},
		{changed: sources(9), want: [4]int{0, 0, 40, 0}},
		{isNew: entries(0, 4), changed: append(sources(10), entries(4, 40)...), want: [4]int{4, 36, 0, 0}},
		{isNew: entries(0, 45), changed: sources(10), want: [4]int{45, 0, 0, 0}},
	} {
		var c changes
		if !test.unknown {
			c.files = map[string]bool{}
		}
		for _, name := range test.changed {
			c.files[name] = false
		}
		for _, name := range test.isNew {
			c.files[name] = true
		}
		chosen, left := choose(bugs, c, 20, 40, 7)
		var got [4]int
		for i, p := range chosen {
			got[c.rank(p)]++
			if i > 0 && c.rank(chosen[i-1]) > c.rank(p) {
				t.Errorf("%v: %s comes after %s", test, p.name, chosen[i-1].name)
			}
		}
		if got != test.want || len(chosen)+len(left) != len(bugs) {
			t.Errorf("%v: got %v and %d left", test, got, len(left))
		}
		if again, _ := choose(bugs, c, 20, 40, 7); fmt.Sprint(names(again)) != fmt.Sprint(names(chosen)) {
			t.Errorf("%v: the same seed chose others", test)
		}
		others, _ := choose(bugs, c, 20, 40, 8)
		if test.want[3] > 0 && fmt.Sprint(names(others)) == fmt.Sprint(names(chosen)) {
			t.Errorf("%v: another seed chose the same", test)
		}
	}
}
