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

// TestChoose: bugs in changed files come first, a sample of the others follows,
// there are no more than the most, and none is forgotten.
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
	for _, test := range []struct {
		touched       []string // nil: not known
		chosen, first int      // how many, and how many of them in changed files
	}{
		{nil, 40, 0},
		{[]string{"other.go"}, 20, 0},
		{[]string{"f1.go"}, 25, 5},
		{[]string{"f1.go", sabotagePath("bug2")}, 26, 6},
		{[]string{"f1.go", "f2.go", "f3.go", "f4.go", "f5.go"}, 40, 25},
		{[]string{"f0.go", "f1.go", "f2.go", "f3.go", "f4.go", "f5.go", "f6.go", "f7.go", "f8.go"}, 40, 40},
	} {
		var touched map[string]bool
		if test.touched != nil {
			touched = map[string]bool{}
		}
		for _, name := range test.touched {
			touched[name] = true
		}
		chosen, left := choose(bugs, touched, 20, 40, 7)
		first := 0
		for first < len(chosen) && chosen[first].in(touched) {
			first++
		}
		if len(chosen) != test.chosen || first != test.first || len(chosen)+len(left) != len(bugs) {
			t.Errorf("%v: %d chosen, %d left, %d of the change; want %d, %d, %d",
				test.touched, len(chosen), len(left), first, test.chosen, len(bugs)-test.chosen, test.first)
		}
		if again, _ := choose(bugs, touched, 20, 40, 7); fmt.Sprint(names(again)) != fmt.Sprint(names(chosen)) {
			t.Errorf("%v: the same seed chose others", test.touched)
		}
		if others, _ := choose(bugs, touched, 20, 40, 8); fmt.Sprint(names(others)) == fmt.Sprint(names(chosen)) {
			t.Errorf("%v: another seed chose the same", test.touched)
		}
	}
}
