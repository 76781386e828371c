package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// source is the code that is released.
type source struct {
	dir         string // a clone that nobody else changes
	commit      string
	time        time.Time // the commit's, UTC: the time stamp of everything
	uncommitted bool      // the checkout it was cloned from has changes that are left out
}

// headOf returns the commit that a checkout has now.
func headOf(ctx context.Context, repo string) (string, error) {
	commit, err := output(ctx, repo, nil, "git", "rev-parse", "HEAD")
	return strings.TrimSpace(commit), err
}

// cloneOf clones a checkout at a commit, or at its HEAD if commit is empty. A clone has what is committed and nothing else. The Go tool also
// stamps no version into what it builds in a second work tree of git, but does so in a clone.
func cloneOf(ctx context.Context, repo, commit, dir string) (source, error) {
	git := func(args ...string) (string, error) {
		out, err := output(ctx, repo, nil, "git", args...)
		return strings.TrimSpace(out), err
	}
	s := source{dir: dir, commit: commit}
	top, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return s, err
	}
	if s.commit == "" {
		if s.commit, err = headOf(ctx, repo); err != nil {
			return s, err
		}
	}
	status, err := git("status", "--porcelain")
	if err != nil {
		return s, err
	}
	s.uncommitted = status != ""
	if _, err := git("clone", "--quiet", "--shared", "--no-checkout", top, dir); err != nil {
		return s, err
	}
	// Files get the modes and line ends of the commit, whatever this machine is set to.
	if _, err := output(ctx, dir, nil, "git", "-c", "core.autocrlf=false", "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", s.commit); err != nil {
		return s, err
	}
	stamp, err := output(ctx, dir, nil, "git", "log", "-1", "--format=%cI", s.commit)
	if err != nil {
		return s, err
	}
	if s.time, err = time.Parse(time.RFC3339, strings.TrimSpace(stamp)); err != nil {
		return s, fmt.Errorf("time of commit %s: %w", s.commit, err)
	}
	s.time = s.time.UTC()
	return s, nil
}
