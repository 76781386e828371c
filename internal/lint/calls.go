package lint

import (
	"go/ast"
	"path"
	"strconv"
	"strings"
)

// ban is a function that may not be used, except in some files.
type ban struct {
	pkg, name string // an import path and a function
	allowed   func(*Source) bool
	why       string
}

// exits reports whether a file may end the process: the binary, a program of the examples, and tests that run as it.
func exits(s *Source) bool {
	return strings.HasPrefix(s.Path, "cmd/") || s.Path == "examples/streambot/main.go" || s.Test && s.Dir() == "internal/cli"
}

func nowhere(*Source) bool { return false }

// ownTime reports whether a file may sleep: no test, or a file of tests in bubbles, whose clock is
// their own.
func ownTime(s *Source) bool {
	if !s.Test {
		return true
	}
	for _, spec := range s.AST.Imports {
		if spec.Path.Value == `"testing/synctest"` {
			return true
		}
	}
	return false
}

var bans = []ban{
	{"os", "Exit", exits, "only the binary decides how a process ends: return an error"},
	{"log", "Fatal", nowhere, "it skips what is deferred: return an error"},
	{"log", "Fatalf", nowhere, "it skips what is deferred: return an error"},
	{"log", "Fatalln", nowhere, "it skips what is deferred: return an error"},
	{"log", "Panic", nowhere, "return an error"},
	{"log", "Panicf", nowhere, "return an error"},
	{"fmt", "Print", nowhere, "write to a writer that the caller gave"},
	{"fmt", "Printf", nowhere, "write to a writer that the caller gave"},
	{"fmt", "Println", nowhere, "write to a writer that the caller gave"},
	{"golang.org/x/sys/unix", "Mmap", nowhere, "it waits for every Munmap of the process: MmapPtr"},
	{"golang.org/x/sys/unix", "Munmap", nowhere, "every Mmap of the process waits for it: MunmapPtr"},
	{"time", "Sleep", ownTime, "a test that sleeps is slow or wrong: wait for the thing itself"},
}

// mayBeUnsafe are the files that may use unsafe. Each says why at its head.
const mayBeUnsafe = "internal/store/player.go internal/store/arena.go internal/store/index.go wal/segment.go internal/vfs/os_unix.go internal/vfs/mem_pages_unix.go"

// Unsafe reports files that use unsafe and may not.
func Unsafe(s *Source) []Finding {
	if s.Test || s.Generated || within(s.Path, mayBeUnsafe) {
		return nil
	}
	var found []Finding
	for _, spec := range s.AST.Imports {
		if spec.Path.Value == `"unsafe"` {
			found = append(found, s.finding("Unsafe", spec.Pos(),
				"import of unsafe: only %s may", strings.ReplaceAll(mayBeUnsafe, " ", ", ")))
		}
	}
	return found
}

// Calls reports uses of banned functions.
func Calls(s *Source) []Finding {
	if s.Generated {
		return nil
	}
	names := importNames(s.AST)
	example := s.Test || strings.HasPrefix(s.Path, "examples/") // examples print
	var found []Finding
	ast.Inspect(s.AST, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		ident, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		pkg := names[ident.Name]
		for _, b := range bans {
			if pkg != b.pkg || sel.Sel.Name != b.name || b.allowed(s) || (example && b.pkg == "fmt") {
				continue
			}
			found = append(found, s.finding("Calls", sel.Pos(), "%s.%s: %s", b.pkg, b.name, b.why))
		}
		return true
	})
	return found
}

// importNames returns the import path behind each package name of a file.
func importNames(file *ast.File) map[string]string {
	names := make(map[string]string, len(file.Imports))
	for _, spec := range file.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has checked it
		}
		name := path.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = target
	}
	return names
}
