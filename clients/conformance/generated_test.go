package conformance

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGenerated: what clients/generate.sh writes is what stands in the repository, no more and no less.
func TestGenerated(t *testing.T) {
	all := os.Getenv("KUJI_CLIENTS")
	if all == "" {
		t.Skip("left out: KUJI_CLIENTS is not set; clients/install.sh DIR installs what it names")
	}
	dir := t.TempDir()
	cmd := exec.Command("../generate.sh", all)
	cmd.Env = append(os.Environ(), "KUJI_GENERATED="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for language, places := range map[string][]string{
		"python":     {"python/src/kuji/v1", "python/src/kuji/_calls.py", "python/src/kuji/_async_calls.py", "java/src/main/java/dev/kuji/Calls.java", "java/contract.xml"},
		"typescript": {"typescript/src/gen"},
	} {
		t.Run(language, func(t *testing.T) {
			if !exists(filepath.Join(all, language)) {
				t.Skipf("left out: clients/install.sh has not installed %s", language)
			}
			for _, place := range places {
				fresh, kept := files(t, filepath.Join(dir, place)), files(t, filepath.Join("..", place))
				if len(fresh) == 0 {
					t.Errorf("nothing was generated in %s", place)
				}
				for name, text := range fresh {
					if !bytes.Equal(kept[name], text) {
						t.Errorf("%s of %s is not current: run clients/generate.sh", name, place)
					}
					delete(kept, name)
				}
				for name := range kept {
					t.Errorf("%s of %s is not generated any more: run clients/generate.sh", name, place)
				}
			}
		})
	}
}

// files reads a file, or all below a folder.
func files(t *testing.T, root string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".pyc") {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil {
			all[name], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
