package lint

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// golden matches a file that an old build has written.
var golden = regexp.MustCompile(`^testdata/golden/v\d+/`)

// Golden reports files of golden directories that were changed or removed, in any commit of the clone
// at root or in its work tree. These files prove what old builds wrote. A build that writes something
// else gets a directory of its own.
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
		by := "an uncommitted change"
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, "commit ") {
				by = line
				continue
			}
			if _, path, ok := strings.Cut(line, "\t"); ok && golden.MatchString(path) {
				found = append(found, Finding{Rule: "Golden", Path: path,
					Message: by + " changes or removes what an old build wrote: put it back, and write a new directory for what is new"})
			}
		}
	}
	return found, nil
}
