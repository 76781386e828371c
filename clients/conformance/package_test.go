package conformance

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
)

// TestPackages packs what was installed twice. Both times it gives the same bytes, and the licence is in
// them. That compilers give the same twice is not tested here.
func TestPackages(t *testing.T) {
	installed := os.Getenv("KUJI_CLIENTS")
	if installed == "" {
		t.Skip("left out: KUJI_CLIENTS names no directory of clients/install.sh")
	}
	var built [2]string
	for i := range built {
		built[i] = t.TempDir()
		if out, err := exec.CommandContext(t.Context(), "../package.sh", built[i], installed).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	packages := map[string]func(string) ([]string, error){".whl": zipped, ".jar": zipped, ".tar.gz": tarred, ".tgz": tarred}
	found := 0
	for suffix, list := range packages {
		files, err := filepath.Glob(filepath.Join(built[0], "*"+suffix))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			found++
			names, err := list(file)
			if err != nil {
				t.Fatal(err)
			}

			licensed := false
			for _, name := range names {
				licensed = licensed || path.Base(name) == "LICENSE"
			}
			if !licensed {
				t.Errorf("%s has no LICENSE: %q", filepath.Base(file), names)
			}
			first, err1 := os.ReadFile(file)
			second, err2 := os.ReadFile(filepath.Join(built[1], filepath.Base(file)))
			if err := errors.Join(err1, err2); err != nil || string(first) != string(second) {
				t.Errorf("%s has other bytes the second time, %v", filepath.Base(file), err)
			}
		}
	}
	if found == 0 {
		t.Error("no package was built")
	}
}

func zipped(file string) (names []string, err error) {
	z, err := zip.OpenReader(file)
	if err != nil {
		return nil, err
	}
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	return names, z.Close()
}

func tarred(file string) (names []string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing to lose
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	for t := tar.NewReader(unzipped); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		names = append(names, h.Name)
	}
}
