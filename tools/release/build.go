package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// linkFlags leave out the tables of debuggers (DWARF) and of symbols: a third of the file. Stack traces,
// profiles and go version -m do not need them. perf, gdb and delve do: for those, build it yourself.
const linkFlags = "-s -w"

// build is one release as it grows.
type build struct {
	options
	source  source
	scratch string // removed in the end
	stage   string // what several packages contain: manual, completions, texts
	version string // what the binaries say: a tag, such as v1.2.3, or a pseudo-version
	infos   map[platform]*debug.BuildInfo
}

// number is the version as packages write it: 1.2.3.
func (b *build) number() string { return strings.TrimPrefix(b.version, "v") }

// out is the place of something that is published.
func (b *build) out(format string, args ...any) string {
	return filepath.Join(b.dist, fmt.Sprintf(format, args...))
}

// binary is the place of a platform's binary.
func (b *build) binary(p platform) string {
	return filepath.Join(b.scratch, p.os+"-"+p.arch, p.exe())
}

// goTool runs the Go tool in the clone.
func (b *build) goTool(ctx context.Context, p platform, args ...string) (string, error) {
	env := p.env()
	if b.cache != "" {
		env = append(env, "GOCACHE="+b.cache)
	}
	return output(ctx, b.source.dir, env, "go", args...)
}

// binaries builds the binary for every platform, and checks that all say the same version of the same
// commit.
func (b *build) binaries(ctx context.Context) error {
	b.infos = map[platform]*debug.BuildInfo{}
	for _, p := range b.targets {
		pgo := "-pgo=" + b.pgo
		if _, err := b.goTool(ctx, p, "build", "-trimpath", "-buildvcs=true", pgo, "-ldflags="+linkFlags, "-o", b.binary(p), "./cmd/kuji"); err != nil {
			return err
		}
		info, err := buildinfo.ReadFile(b.binary(p))
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		stamps := map[string]string{}
		for _, s := range info.Settings {
			stamps[s.Key] = s.Value
		}
		if stamps["vcs.revision"] != b.source.commit || stamps["vcs.modified"] != "false" {
			return fmt.Errorf("%s: the binary says commit %q, modified %q; want %s, unmodified", p, stamps["vcs.revision"], stamps["vcs.modified"], b.source.commit)
		}
		if b.version == "" {
			b.version = info.Main.Version
		}
		if info.Main.Version != b.version || !strings.HasPrefix(b.version, "v") {
			return fmt.Errorf("%s: the binary says version %q, want %q", p, info.Main.Version, b.version)
		}
		b.infos[p] = info
		b.log("built: %s", p)
	}
	return nil
}

// manual writes the manual pages and completions by a binary that runs on this machine.
func (b *build) manual(ctx context.Context) error {
	host := platform{runtime.GOOS, runtime.GOARCH}
	binary := b.binary(host)
	if _, ok := b.infos[host]; !ok {
		if _, err := b.goTool(ctx, host, "build", "-trimpath", "-buildvcs=true", "-pgo=off", "-o", binary, "./cmd/kuji"); err != nil {
			return err
		}
	}
	if _, err := output(ctx, b.scratch, nil, binary, "man", filepath.Join(b.stage, "man")); err != nil {
		return err
	}
	dir := filepath.Join(b.stage, "completions")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for shell, name := range completions {
		script, err := output(ctx, b.scratch, nil, binary, "completion", shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// completions are the files with the completions of each shell.
var completions = map[string]string{"bash": "kuji.bash", "zsh": "_kuji", "fish": "kuji.fish", "powershell": "kuji.ps1"}
