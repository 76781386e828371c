package catalog_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kuji-dev/kuji/catalog"
)

var update = flag.Bool("update", false, "rewrite the generated files and the expected errors")

// TestBad parses every catalog of testdata/bad and compares the errors, with
// their lines and columns, to those written down. It also holds the JSON Schema
// against the parser: the first line of each case says what the schema thinks.
func TestBad(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]byte{}
		var sources []txtar.File
		for _, f := range archive.Files {
			if strings.HasSuffix(f.Name, ".yaml") {
				sources = append(sources, f)
			} else {
				want[f.Name] = f.Data
			}
		}
		archive.Files = nil
		for _, f := range sources {
			name := strings.TrimSuffix(f.Name, ".yaml")
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+name, func(t *testing.T) {
				got := []byte(report(t, f.Data))
				archive.Files = append(archive.Files, f, txtar.File{Name: name + ".errors", Data: got})
				if !*update && !bytes.Equal(got, want[name+".errors"]) {
					t.Errorf("got\n%swant\n%s", got, want[name+".errors"])
				}
			})
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// report parses a bad catalog and writes down what is said about it.
func report(t *testing.T, source []byte) string {
	c, err := catalog.Parse(source)
	if err == nil {
		t.Error("no error")
		return ""
	}
	if c != nil {
		t.Error("a catalog with the error")
	}
	var all *catalog.Errors
	if !errors.As(err, &all) || len(all.List) == 0 {
		t.Fatalf("not an *Errors: %v", err)
	}
	lines := bytes.Count(source, []byte("\n")) + 1
	for _, e := range all.List {
		if e.Line < 1 || e.Line > lines || e.Column < 1 || e.Message == "" {
			t.Errorf("no place or no message: %#v", e)
		}
	}
	verdict := "refuses"
	switch err := schemaError(t, source); {
	case errors.Is(err, errNotYAML):
		verdict = "cannot be asked"
	case err == nil:
		verdict = "accepts"
	}
	return fmt.Sprintf("schema: %s\n%s\n", verdict, err)
}

// badSources returns all catalogs of testdata/bad.
func badSources(t testing.TB) [][]byte {
	files, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if strings.HasSuffix(f.Name, ".yaml") {
				all = append(all, f.Data)
			}
		}
	}
	return all
}
