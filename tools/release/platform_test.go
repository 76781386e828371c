package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParsePlatforms(t *testing.T) {
	if all, err := parsePlatforms(""); err != nil || !slices.Equal(all, platforms) {
		t.Errorf("%v, %v", all, err)
	}
	if some, err := parsePlatforms("windows/arm64,linux/amd64,windows/arm64"); err != nil || !slices.Equal(some, []platform{{"windows", "arm64"}, {"linux", "amd64"}}) {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := parsePlatforms("linux/amd64,plan9/mips"); err == nil || !strings.Contains(err.Error(), `"plan9/mips"`) {
		t.Errorf("%v", err)
	}
}

func TestPackageVersion(t *testing.T) {
	for _, c := range []struct{ version, format, number, pre string }{
		{"v1.2.3", "deb", "1.2.3", ""},
		{"v1.2.3-rc.1", "deb", "1.2.3", "rc.1"},
		{"v1.2.3-rc.1", "rpm", "1.2.3", "rc.1"},
		{"v1.2.3-rc.1", "apk", "1.2.3", "rc1"},
		{"v0.0.0-20261129185130-149f39477786", "deb", "0.0.0", "20261129185130.149f39477786"},
		{"v0.0.0-20261129185130-149f39477786", "apk", "0.0.0", "pre20261129185130"},
		{"v1.2.4-0.20261129185130-149f39477786", "rpm", "1.2.4", "0.20261129185130.149f39477786"},
		{"v1.2.4-0.20261129185130-149f39477786", "apk", "1.2.4", "pre20261129185130"},
	} {
		if number, pre := packageVersion(c.version, c.format); number != c.number || pre != c.pre {
			t.Errorf("%s as %s: %s, %s; want %s, %s", c.version, c.format, number, pre, c.number, c.pre)
		}
	}
}

func TestBuilderOf(t *testing.T) {
	env := map[string]string{}
	if got := builderOf(func(name string) string { return env[name] }); got != localBuilder {
		t.Errorf("here: %s", got)
	}
	env = map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_WORKFLOW_REF": "kuji-dev/kuji/.github/workflows/release.yml@refs/tags/v1.2.3"}
	if got := builderOf(func(name string) string { return env[name] }); got != "https://github.com/kuji-dev/kuji/.github/workflows/release.yml@refs/tags/v1.2.3" {
		t.Errorf("in a workflow: %s", got)
	}
}

// TestAddNotices checks which files count as a module's terms, and that they are found in folders above a
// package.
func TestAddNotices(t *testing.T) {
	root := t.TempDir()
	pkg := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(pkg, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"LICENSE", "licenses.go", "NOTICE.txt", "a/COPYING", "a/b/LICENCE.md", "a/b/license_test.go", "a/other"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	texts := map[string]map[string][]byte{}
	if err := addNotices(texts, "m v1", root, pkg); err != nil {
		t.Fatal(err)
	}
	var got []string
	for name := range texts["m v1"] {
		got = append(got, name)
	}
	slices.Sort(got)
	if want := []string{"LICENSE", "NOTICE.txt", "a/COPYING", "a/b/LICENCE.md"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := addNotices(texts, "m v1", pkg, root); err == nil {
		t.Error("a package outside its module")
	}
}

// TestPackagedUnit checks that a changed unit does not silently keep another user or path.
func TestPackagedUnit(t *testing.T) {
	unit, err := packagedUnit("../../deploy/systemd/kuji.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, not := range []string{"DynamicUser", "/usr/local"} {
		if strings.Contains(string(unit), not) {
			t.Errorf("the unit has %q", not)
		}
	}
	name := filepath.Join(t.TempDir(), "kuji.service")
	if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
		if err := os.WriteFile(name, bytes.ReplaceAll(unit, []byte("/usr/bin/kuji "), []byte("/bin/true ")), 0o666); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(analyze, "verify", name).CombinedOutput(); err != nil || bytes.Contains(out, []byte("kuji.service:")) {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if err := os.WriteFile(name, []byte("[Unit]\n[Service]\nExecStart=/opt/kuji serve\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := packagedUnit(name); err == nil {
		t.Error("a unit with another path is taken")
	}
}

// TestSortedControl checks that order and times of files make no difference, and that what follows stays.
func TestSortedControl(t *testing.T) {
	stamp := int64(1) // another one each time
	apk := func(names ...string) []byte {
		t.Helper()
		stamp++
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		w := tar.NewWriter(z)
		for _, name := range names {
			if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(name)), Mode: 0o755, ModTime: time.Unix(stamp, 0)}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte(name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Flush(), z.Close()); err != nil {
			t.Fatal(err)
		}
		return append(out.Bytes(), "the files"...)
	}
	at := time.Unix(1e9, 0)
	a, err := sortedControl(apk(".PKGINFO", ".post-install", ".pre-deinstall"), at)
	if err != nil {
		t.Fatal(err)
	}
	b, err := sortedControl(apk(".PKGINFO", ".pre-deinstall", ".post-install"), at)
	if err != nil || !bytes.Equal(a, b) || !bytes.HasSuffix(a, []byte("the files")) || bytes.Count(a, []byte("the files")) != 1 {
		t.Errorf("%x and %x, %v", a, b, err)
	}
	if _, err := sortedControl(apk(".post-install"), at); err == nil {
		t.Error("an apk without .PKGINFO is taken")
	}
	if _, err := sortedControl([]byte("no gzip"), at); err == nil {
		t.Error("what is no apk is taken")
	}
}
