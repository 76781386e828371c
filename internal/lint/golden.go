package lint

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// golden is a file of a directory that a build of old has written.
var golden = regexp.MustCompile(`^testdata/golden/v\d+/`)

// Golden reports files of golden directories that a commit has changed or removed, in any commit that
// the clone at root has, and those that are changed there but not committed. What was written once says
// how it was written: a build that writes otherwise gets a directory of its own.
func Golden(root string) ([]Finding, error) {
	var found []Finding
	for _, args := range [][]string{
		{"log", "-m", "--format=commit %h"},
		{"diff", "HEAD"},
	} {
		args = append(append([]string{"-C", root}, args...), "--no-renames", "--diff-filter=a", "--name-status", "--", "testdata/golden")
		var stderr bytes.Buffer
		cmd := exec.Command("git", args...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, stderr.Bytes())
		}
		by := "what is not committed"
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, "commit ") {
				by = line
				continue
			}
			if _, path, ok := strings.Cut(line, "\t"); ok && golden.MatchString(path) {
				found = append(found, Finding{Rule: "Golden", Path: path,
					Message: by + " changes or removes what a build of old has written: put it back, and write a directory of its own for what is new"})
			}
		}
	}
	return found, nil
}
