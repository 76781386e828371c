package lint

import (
	"fmt"
	"strings"
	"testing"
)

func TestSizes(t *testing.T) {
	fields := func(n int, form string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, form+"; ", i)
		}
		return "type t struct { " + b.String() + "}\n"
	}
	methods := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "func (x *t) m%d() {}\n", i)
		}
		return b.String()
	}
	for _, tt := range []struct{ name, path, text, want string }{
		{"as many fields as allowed", "wal/t.go", fields(MaxFields, "f%d int"), ""},
		{"too many fields", "wal/t.go", fields(MaxFields+1, "f%d int"), "t has 16 fields and 0 methods"},
		{"fields on one line", "wal/t.go", fields(MaxFields/2+1, "f%[1]d, g%[1]d int"), "16 fields"},
		{"a form", "wal/t.go", fields(MaxFields+1, "F%d int"), ""},
		{"as many methods as allowed", "wal/t.go", "type t int\n" + methods(MaxMethods), ""},
		{"too many methods", "wal/t.go", "type t int\n" + methods(MaxMethods+1), "0 fields and 26 methods"},
		{"a test's", "wal/t_test.go", fields(MaxFields+1, "f%d int"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, Sizes([]*Source{source(t, tt.path, "package p\n"+tt.text)}), tt.want)
		})
	}
}
