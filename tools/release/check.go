package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// buildAgain builds everything a second time, from another clone and with an empty build cache, and
// compares it with what stands in o.dist.
func buildAgain(ctx context.Context, o options) (err error) {
	scratch, err := os.MkdirTemp("", "kuji-again-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	first := o.dist
	o.dist, o.cache = filepath.Join(scratch, "dist"), filepath.Join(scratch, "cache")
	if err := release(ctx, o); err != nil {
		return err
	}
	n, err := sameFiles(first, o.dist)
	if err != nil {
		return err
	}
	o.log("%d files, the same bytes twice", n)
	return nil
}

// sameFiles compares two directories, and returns how many files they have.
func sameFiles(a, b string) (int, error) {
	sums := map[string][2]string{}
	for i, dir := range []string{a, b} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return 0, err
		}
		for _, e := range entries {
			sum, err := sumOf(filepath.Join(dir, e.Name()))
			if err != nil {
				return 0, err
			}
			both := sums[e.Name()]
			both[i] = sum
			sums[e.Name()] = both
		}
	}
	var differ []string
	for name, both := range sums {
		if both[0] != both[1] {
			differ = append(differ, fmt.Sprintf("%s: SHA-256 %q, then %q", name, both[0], both[1]))
		}
	}
	if len(differ) > 0 {
		return 0, fmt.Errorf("two builds differ:\n%s", strings.Join(differ, "\n"))
	}
	if len(sums) == 0 {
		return 0, errors.New("nothing was built")
	}
	return len(sums), nil
}
