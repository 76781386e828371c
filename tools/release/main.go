// Command release builds everything that a release of Kuji publishes, out of one commit: binaries for
// every platform in archives, deb, rpm and apk packages, an image, the Helm chart, lists of what is
// inside (SBOM), checksums, and a statement of how all that was built (provenance).
//
// It builds from a fresh clone of the repository's HEAD, so a file that no commit has is in no release.
// The same commit and the same Go give the same bytes: every time stamp is the commit's, and nothing of
// the machine gets in. It needs Go and git, and no network once the modules are in the cache.
//
// It publishes nothing: .github/workflows/release.yml does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
)

type options struct {
	repo    string     // the checkout that is built from
	commit  string     // that is built; empty: HEAD
	dist    string     // where everything goes; what is there is removed
	targets []platform // for which platforms
	pgo     string     // "auto": with the profile; "off": a minute faster, for tests of the packages
	builder string     // who builds: the id in the provenance
	cache   string     // the build cache; empty: that of the user
	log     func(format string, args ...any)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	repo := flags.String("repo", "../..", "the `checkout` whose HEAD is built")
	dist := flags.String("dist", "", "the `directory` for everything; what is there is removed (default: dist in the checkout)")
	targets := flags.String("targets", "", "`platforms` such as linux/amd64, with commas (default: all)")
	pgo := flags.String("pgo", "auto", "auto: by the binary's profile, as releases are; off: builds faster, for tests")
	twice := flags.Bool("check", false, "build a second time, from another clone with an empty build cache, and compare every byte")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o := options{repo: *repo, dist: *dist, pgo: *pgo, builder: builderOf(os.Getenv),
		log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	if o.dist == "" {
		o.dist = filepath.Join(o.repo, "dist")
	}
	if *pgo != "auto" && *pgo != "off" {
		return fmt.Errorf("-pgo %q: expected auto or off", *pgo)
	}
	var err error
	if o.targets, err = parsePlatforms(*targets); err != nil {
		return err
	}
	if o.commit, err = headOf(ctx, o.repo); err != nil { // once: somebody may commit meanwhile
		return err
	}
	if err := release(ctx, o); err != nil {
		return err
	}
	if *twice {
		return buildAgain(ctx, o)
	}
	return nil
}

// release builds everything into o.dist.
func release(ctx context.Context, o options) (err error) {
	scratch, err := os.MkdirTemp("", "kuji-release-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	src, err := cloneOf(ctx, o.repo, o.commit, filepath.Join(scratch, "source"))
	if err != nil {
		return err
	}
	if src.uncommitted {
		o.log("changes that no commit has are left out")
	}
	b := &build{options: o, source: src, scratch: scratch, stage: filepath.Join(scratch, "stage")}
	if err := b.binaries(ctx); err != nil {
		return err
	}
	o.log("kuji %s, commit %s of %s", b.version, src.commit, src.time.Format("2006-01-02 15:04:05Z"))
	if err := errors.Join(os.RemoveAll(o.dist), os.MkdirAll(o.dist, 0o777)); err != nil {
		return err
	}
	// What a line needs stands in a line above it. The steps of a line do not know each other.
	for _, line := range [][]step{
		{{"manual and completions", b.manual}, {"licences of others", b.notices}},
		{{"archives", b.archives}, {"deb, rpm, apk", b.packages}, {"image", b.image}, {"chart", b.chart}, {"lists of modules (SBOM)", b.sboms}},
		{{"provenance", b.provenance}},
		{{"checksums", b.checksums}},
	} {
		failed := make([]error, len(line))
		var all sync.WaitGroup
		for i, s := range line {
			all.Go(func() {
				if err := s.do(ctx); err != nil {
					failed[i] = fmt.Errorf("%s: %w", s.what, err)
				}
			})
		}
		all.Wait()
		if err := errors.Join(failed...); err != nil {
			return err
		}
	}
	return nil
}

// step is a part of a release.
type step struct {
	what string
	do   func(context.Context) error
}

// output runs a program in a directory and returns what it writes.
func output(ctx context.Context, dir string, env []string, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	if env != nil {
		cmd.Env = append(os.Environ(), env...)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}
