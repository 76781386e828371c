package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// noticeFile is the name of a file that whoever passes a module on must pass on, too.
var noticeFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice|copyright|patents)([-._].*)?$`)

// notices collects the licences of all modules that any of the binaries has, and of Go, in one file.
func (b *build) notices(ctx context.Context) error {
	texts := map[string]map[string][]byte{} // by module and version, then by file
	for _, p := range b.targets {
		out, err := b.goTool(ctx, p, "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", "./cmd/kuji")
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			f := strings.Split(strings.TrimSpace(line), "\t")
			if len(f) != 4 {
				continue // a package of Go, or of Kuji
			}
			if err := addNotices(texts, f[0]+" "+f[1], f[2], f[3]); err != nil {
				return err
			}
		}
	}
	root, err := b.goTool(ctx, b.targets[0], "env", "GOROOT")
	if err != nil {
		return err
	}
	root = strings.TrimSpace(root)
	if err := addNotices(texts, "Go "+b.infos[b.targets[0]].GoVersion, root, root); err != nil {
		return err
	}
	var all bytes.Buffer
	fmt.Fprintf(&all, "Kuji %s contains what is listed here, under these terms.\n", b.version)
	for _, module := range slices.Sorted(maps.Keys(texts)) {
		files := texts[module]
		if len(files) == 0 {
			return fmt.Errorf("%s has no file with its licence", module)
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(&all, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("-", 80), module, name, bytes.TrimSpace(files[name]))
		}
	}
	if err := os.MkdirAll(b.stage, 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.stage, "THIRD-PARTY-NOTICES"), all.Bytes(), 0o666)
}

// addNotices adds what stands in a package's folder and in those above it, up to the module's.
func addNotices(texts map[string]map[string][]byte, module, root, dir string) error {
	if texts[module] == nil {
		texts[module] = map[string][]byte{}
	}
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, dir)
		if err != nil || strings.HasPrefix(rel, "..") {
			return fmt.Errorf("%s is not below %s", dir, root)
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !noticeFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			texts[module][filepath.ToSlash(filepath.Join(rel, e.Name()))] = text
		}
		if rel == "." {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}
