package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rhysd/actionlint"
)

const workflows = "../../.github/workflows"

// TestWorkflows has actionlint read the workflows of GitHub.
func TestWorkflows(t *testing.T) {
	l, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(workflows, "*.yml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v: want the workflows", files, err)
	}
	found, err := l.LintFiles(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		t.Errorf("%s:%d:%d: %s", filepath.Base(e.Filepath), e.Line, e.Column, e.Message)
	}
	bad := filepath.Join(t.TempDir(), "bad.yml")
	if err := os.WriteFile(bad, []byte("on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      - run: echo ${{ nothing.at.all }}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := l.LintFile(bad, nil); err != nil || len(found) == 0 {
		t.Errorf("a workflow with an unknown name is taken: %v", err)
	}
}

// TestWorkflowTargets checks that what workflows call is there.
func TestWorkflowTargets(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(workflows, "*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)(?:^|[ ;&|])make ([a-z-]+)`).FindAllSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^` + string(m[1]) + `:`).Match(makefile) {
				t.Errorf("%s: make %s is no target", filepath.Base(file), m[1])
			}
		}
	}
}
