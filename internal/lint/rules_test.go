package lint

import (
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func source(t *testing.T, path, text string) *Source {
	t.Helper()
	s, err := parse(token.NewFileSet(), path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check wants one finding that has this text in it, or none if that is "".
func check(t *testing.T, found []Finding, want string) {
	t.Helper()
	if want == "" {
		if len(found) != 0 {
			t.Errorf("found %v, want nothing", found)
		}
		return
	}
	if len(found) != 1 || !strings.Contains(found[0].Message, want) {
		t.Errorf("found %v, want one finding with %q", found, want)
	}
}

func TestImports(t *testing.T) {
	for _, tt := range []struct{ path, imports, want string }{
		{"server/draw.go", Module, ""},
		{"server/draw.go", Module + "/proto/kuji/v1", ""},
		{"server/draw.go", Module + "/internal/store", "must not import room internal/store"},
		{"server/draw_test.go", Module + "/internal/rules", "must not import"},
		{"server/draw_test.go", Module + "/examples", ""},
		{"server/draw.go", Module + "/examples", "must not import"},
		{"draw.go", Module + "/server", "room . must not import room server"},
		{"draw.go", Module + "/wal", ""},
		{"draw.go", "github.com/prometheus/client_golang/prometheus", "does without"},
		{"draw.go", Module + "/internal/hook", ""},
		{"draw.go", Module + "/sampler", "must not import"},
		{"internal/rules/draw.go", Module + "/wal", "must not import room wal"},
		{"internal/rules/draw.go", Module, "must not import room ."},
		{"internal/rules/draw.go", Module + "/sampler", ""},
		{"internal/rules/draw.go", Module + "/internal/store", ""},
		{"internal/store/apply.go", Module + "/internal/rules", "must not import"},
		{"internal/store/apply_test.go", Module + "/internal/rules", "must not import"},
		{"internal/store/apply.go", Module + "/catalog", "must not import"},
		{"internal/hook/hook.go", Module, "must not import"},
		{"internal/sim/life.go", Module + "/internal/hook", ""},
		{"internal/sim/life.go", Module + "/internal/store", "must not import"},
		{"wal/log.go", Module + "/catalog", "must not import"},
		{"wal/log.go", Module + "/internal/vfs", ""},
		{"wal/log.go", "golang.org/x/sys/unix", ""},
		{"wal/log.go", "golang.org/x/systematic", "does without"},
		{"wal/inner/log.go", Module + "/catalog", "room wal must not import"},
		{"sampler/sampler.go", Module + "/internal/vfs", "must not import"},
		{"sampler/sampler_test.go", "pgregory.net/rapid", ""},
		{"catalog/parse.go", Module + "/sampler", "must not import"},
		{"catalog/parse.go", "strings", ""},
		{"internal/cli/serve.go", Module + "/internal/rules", "must not import"},
		{"internal/cli/serve.go", Module + "/server", ""},
		{"attic/draw.go", "strings", "no place in the plan"},
		{"server/draw.go", Module + "/attic", "no place in the plan"},
		{"bench/draw.go", Module + "/internal/store", ""},
	} {
		t.Run(tt.path+" "+tt.imports, func(t *testing.T) {
			check(t, Imports(source(t, tt.path, fmt.Sprintf("package p\nimport %q\n", tt.imports))), tt.want)
		})
	}
}

// TestArrowsRunOneWay checks the plan: no room imports itself through others.
func TestArrowsRunOneWay(t *testing.T) {
	var reach func(from string, way []string)
	reach = func(from string, way []string) {
		for i, dir := range way {
			if dir == from {
				t.Fatalf("the plan runs in a circle: %v", append(way[i:], from))
			}
		}
		home, ok := roomOf(from)
		if !ok {
			t.Fatalf("%v leads to %s, which has no room", way, from)
		}
		for _, to := range home.may {
			reach(to, append(way, from))
		}
	}
	for _, r := range rooms {
		reach(r.dir, nil)
	}
}

func TestLight(t *testing.T) {
	deps := []string{"fmt", "github.com/nats-io/nats.go", "github.com/nats-iota/x", "golang.org/x/sys/unix"}
	if found := Light(".", deps); len(found) != 1 || !strings.Contains(found[0].Message, "nats-io/nats.go") {
		t.Errorf("got %v, want one finding about nats.go", found)
	}
	if found := Light("server", []string{"connectrpc.com/connect", "connectrpc.com/otelconnect", "go.opentelemetry.io/otel/trace"}); len(found) != 2 {
		t.Errorf("got %v, want findings about OpenTelemetry", found)
	}
	if found := Light(".", []string{"fmt", "errors"}); len(found) != 0 {
		t.Errorf("got %v, want none", found)
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct{ path, text, want string }{
		{"server/draw.go", "package server", ""},
		{"server/draw.go", "package utils", "package utils"},
		{"server/draw_test.go", "package utils_test", "package utils"},
		{"server/helpers.go", "package server", "file helpers.go"},
		{"server/types_test.go", "package server", "file types_test.go"},
	} {
		check(t, Names(source(t, tt.path, tt.text)), tt.want)
	}
}

func TestLengths(t *testing.T) {
	long := "package p\nfunc long() {\n" + strings.Repeat("\n", MaxFunctionLines-1) + "}\n"
	atLimit := "package p\nfunc long() {\n" + strings.Repeat("\n", MaxFunctionLines-2) + "}\n"
	tall := "package p\n" + strings.Repeat("\n", MaxFileLines)
	check(t, Lengths(source(t, "p/p.go", long)), "long has 81 lines, at most 80")
	check(t, Lengths(source(t, "p/p.go", atLimit)), "")
	check(t, Lengths(source(t, "p/p.go", tall)), "701 lines, at most 700")
	check(t, Lengths(source(t, "p/p_test.go", tall+long[10:])), "")
	check(t, Lengths(source(t, "p/p.go", "// Code generated by x. DO NOT EDIT.\n\n"+tall)), "")
}

func TestPackageComments(t *testing.T) {
	good := source(t, "a/a.go", "// Package a holds what the first letter stands for; nothing else may come in.\npackage a")
	other := source(t, "a/b.go", "package a")
	bare := source(t, "b/b.go", "package b")
	short := source(t, "c/c.go", "// Package c.\npackage c")
	onlyTest := source(t, "d/d_test.go", "package d")
	generated := source(t, "e/e.go", "// Code generated by x. DO NOT EDIT.\n\npackage e")
	check(t, PackageComments([]*Source{good, other, onlyTest, generated}), "")
	check(t, PackageComments([]*Source{good, bare}), "package b has no package comment")
	check(t, PackageComments([]*Source{other, good, short}), "package c has no package comment")
}

func TestCalls(t *testing.T) {
	for _, tt := range []struct{ path, text, want string }{
		{"server/a.go", `import "os"; func f() { os.Exit(1) }`, "os.Exit"},
		{"cmd/kuji/a.go", `import "os"; func f() { os.Exit(1) }`, ""},
		{"server/a.go", `import xx "os"; func f() { xx.Exit(1) }`, "os.Exit"},
		{"server/a.go", `import "log"; func f() { log.Fatalf("") }`, "log.Fatalf"},
		{"server/a.go", `import "fmt"; func f() { fmt.Println() }`, "fmt.Println"},
		{"server/a_test.go", `import "fmt"; func Example() { fmt.Println() }`, ""},
		{"server/a.go", `import "fmt"; func f() { fmt.Sprint() }`, ""},
		{"wal/a.go", `import "golang.org/x/sys/unix"; func f() { unix.Mmap(0, 0, 1, 0, 0) }`, "unix.Mmap"},
		{"wal/a.go", `import "golang.org/x/sys/unix"; func f() { unix.MmapPtr(0, 0, nil, 1, 0, 0) }`, ""},
		{"server/a_test.go", `import "time"; func f() { time.Sleep(1) }`, "time.Sleep"},
		{"server/a_test.go", `import ("time"; "testing/synctest"); func f() { synctest.Wait(); time.Sleep(1) }`, ""},
		{"server/a.go", `import "time"; func f() { time.Sleep(1) }`, ""},
		{"server/a.go", `func f(os T) { os.Exit(1) }`, ""},
	} {
		check(t, Calls(source(t, tt.path, "package p\n"+tt.text)), tt.want)
	}
}

func TestUnsafe(t *testing.T) {
	const text = "package p\nimport \"unsafe\"\nvar n = unsafe.Sizeof(1)\n"
	for path, want := range map[string]string{
		"internal/store/player.go":     "",
		"internal/store/arena.go":      "",
		"internal/store/pool.go":       "import of unsafe: only internal/store/player.go, internal/store/arena.go, internal/store/index.go",
		"internal/rules/draw.go":       "import of unsafe",
		"run.go":                       "import of unsafe",
		"wal/segment.go":               "",
		"wal/log.go":                   "import of unsafe",
		"internal/vfs/os_unix.go":      "",
		"internal/vfs/memory.go":       "import of unsafe",
		"internal/store/index_test.go": "",
	} {
		check(t, Unsafe(source(t, path, text)), want)
	}
	check(t, Unsafe(source(t, "proto/p.go", "// Code generated by x. DO NOT EDIT.\n\n"+text)), "")
	check(t, Unsafe(source(t, "run.go", "package p\nimport u \"unsafe\"\nvar n = u.Sizeof(1)\n")), "import of unsafe")
}

func TestPhrases(t *testing.T) {
	for _, tt := range []struct{ path, text, want string }{
		{"README.md", "go run ./cmd/kuji demo", ""},
		{"README.md", "data in /home/ann/data", "a path of somebody's machine"},
		{"README.md", "(/ro" + "ot/x)", "a path of somebody's machine"},
		{"README.md", "the path /var/lib/kuji, and https://host/home/page", ""},
		{"wal/log.go", "// see issue #12", "means something elsewhere"},
		{"wal/log.go", "// TODO: later", "unfinished"},
		{"wal/log.go", "// hacking is XXXL", ""},
		{"docs/internals/notes.md", "the TODO list", ""},
		{"internal/lint/x.go", "// TODO", ""},
	} {
		check(t, Phrases(Text{Path: tt.path, Data: []byte(tt.text)}), tt.want)
	}
}

func TestLinks(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "docs/a.md"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, text, want string }{
		{"README.md", "[a](docs/a.md#part) [b](https://example.com/none) [c](#here)", ""},
		{"README.md", "[a](docs/b.md)", "docs/b.md: leads nowhere"},
		{"docs/b.md", "[a](a.md) [r](../docs)", ""},
		{"docs/b.md", "[a](docs/a.md)", "leads nowhere"},
		{"main.go", "[a](nowhere)", ""},
	} {
		check(t, Links(root, Text{Path: tt.path, Data: []byte(tt.text)}), tt.want)
	}
}

func TestFiles(t *testing.T) {
	sources := []*Source{source(t, "internal/rules/draw.go", "package rules")}
	for _, tt := range []struct{ path, text, want string }{
		{"docs/internals/a.md", "in `internal/rules/draw.go`, that is `draw.go`", ""},
		{"docs/internals/a.md", "in `aw.go`", "no file aw.go"},
		{"docs/internals/a.md", "in `internal/store/draw.go`", "no file internal/store/draw.go"},
		{"docs/internals/journal/a.md", "was in `front.go`", ""},
		{"docs/a.md", "make a `main.go`", ""},
	} {
		check(t, Files(sources, Text{Path: tt.path, Data: []byte(tt.text)}), tt.want)
	}
}

func TestWrapped(t *testing.T) {
	long := strings.Repeat("word ", 20) + "word"
	for _, tt := range []struct{ path, text, want string }{
		{"README.md", long[:100], ""},
		{"README.md", "text\n" + long, "104 characters"},
		{"README.md", strings.Repeat("é", 100), ""},
		{"README.md", strings.Repeat("x", 200), ""},
		{"README.md", "| " + long, ""},
		{"README.md", "```\n" + long + "\n```\nmore", ""},
		{"README.md", "```\n```\n" + long, "104 characters"},
		{"README.md", "    " + long, ""},
		{"doc.go", long, ""},
	} {
		check(t, Wrapped(Text{Path: tt.path, Data: []byte(tt.text)}), tt.want)
	}
}

// TestLoad: the rules see all files of the module, and no others.
func TestLoad(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "package a", "b/b_test.go": "package b", "b/testdata/bad.go": "no Go at all",
		".git/x.go": "package x", "other/go.mod": "module other", "other/o.go": "package o",
		".ci/run": "run", "README.md": "text", "blob": "\x00",
	} {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range tree.Sources {
		got = append(got, s.Path)
	}
	for _, text := range tree.Texts {
		got = append(got, text.Path)
	}
	want := "a.go b/b_test.go .ci/run README.md a.go b/b_test.go b/testdata/bad.go"
	if strings.Join(got, " ") != want {
		t.Errorf("loaded %q, want %q", strings.Join(got, " "), want)
	}
}
