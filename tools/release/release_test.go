package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// host is the platform that tests build for: binaries must run here.
var host = platform{runtime.GOOS, runtime.GOARCH}

// scratch holds what is built once for all tests.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kuji-release-test-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// built builds a release for this machine, without the profile, and returns its directory.
var built = sync.OnceValues(func() (string, error) {
	return buildInto("first")
})

func buildInto(name string) (string, error) {
	dist := filepath.Join(scratch, name)
	return dist, release(context.Background(), options{repo: "../..", dist: dist, targets: []platform{host}, pgo: "off", builder: localBuilder, log: func(string, ...any) {}})
}

func dist(t *testing.T) string {
	t.Helper()
	if !slices.Contains(platforms, host) {
		t.Skipf("no release has a binary for %s", host)
	}
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// one returns the one file of a pattern.
func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %v, %v; want one file", pattern, all, err)
	}
	return all[0]
}

func needLinux(t *testing.T) {
	t.Helper()
	if host.os != "linux" {
		t.Skip("only Linux has packages")
	}
}

// unpack extracts a tar into a directory, with modes and, for root, owners.
func unpack(t *testing.T, r io.Reader, dir string) {
	t.Helper()
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsLocal(h.Name) {
			t.Fatalf("%q leads out of the archive", h.Name)
		}
		name := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, 0o777)
		} else {
			err = os.MkdirAll(filepath.Dir(name), 0o777)
			if err == nil {
				err = create(name, func(w io.Writer) error { _, err := io.Copy(w, in); return err })
			}
		}
		if err == nil {
			err = os.Chmod(name, os.FileMode(h.Mode&0o777))
		}
		if err == nil && os.Geteuid() == 0 {
			err = os.Chown(name, h.Uid, h.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func gunzip(t *testing.T, name string) io.Reader {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestTwice builds from a second clone, and compares every byte. The Go tool takes compiled packages from
// its cache here; with -check, the program compiles them again.
func TestTwice(t *testing.T) {
	first := dist(t)
	second, err := buildInto("second")
	if err != nil {
		t.Fatal(err)
	}
	n, err := sameFiles(first, second)
	if err != nil {
		t.Fatal(err)
	}
	if want := 9; host.os == "linux" && n < want {
		t.Errorf("%d files, want %d or more", n, want)
	}
}

func TestSameFilesDiffer(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sameFiles(a, b); err == nil {
		t.Error("two empty directories are no release")
	}
	write(a, "x", "1")
	write(b, "x", "1")
	if n, err := sameFiles(a, b); n != 1 || err != nil {
		t.Errorf("%d files, %v", n, err)
	}
	write(b, "x", "2")
	if _, err := sameFiles(a, b); err == nil || !strings.Contains(err.Error(), "x: SHA-256") {
		t.Errorf("other bytes: %v", err)
	}
	write(b, "x", "1")
	write(b, "y", "")
	if _, err := sameFiles(a, b); err == nil || !strings.Contains(err.Error(), "y: SHA-256") {
		t.Errorf("a file too many: %v", err)
	}
}

// TestChecksums checks that SHA256SUMS and the provenance name every file with its sum.
func TestChecksums(t *testing.T) {
	dir := dist(t)
	sums := map[string]string{}
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		sums[name] = sum
	}
	data, err := os.ReadFile(one(t, dir, "*_provenance.intoto.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s statement
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	subjects := map[string]string{}
	for _, r := range s.Subject {
		subjects[r.Name] = r.Digest["sha256"]
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		sum, err := sumOf(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() != "SHA256SUMS" && sums[e.Name()] != sum {
			t.Errorf("%s: SHA256SUMS says %q, the file has %s", e.Name(), sums[e.Name()], sum)
		}
		if e.Name() != "SHA256SUMS" && !strings.HasSuffix(e.Name(), ".intoto.json") && subjects[e.Name()] != sum {
			t.Errorf("%s: the provenance says %q, the file has %s", e.Name(), subjects[e.Name()], sum)
		}
	}
	head, err := output(t.Context(), "../..", nil, "git", "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	d := s.Predicate.BuildDefinition
	if got := d.ResolvedDependencies[0].Digest["gitCommit"]; got != strings.TrimSpace(head) {
		t.Errorf("built from %s, want %s", got, head)
	}
	if s.Predicate.RunDetails.Builder.ID != localBuilder || d.InternalParameters["pgo"] != "off" {
		t.Errorf("the provenance says %+v, %+v", s.Predicate.RunDetails, d.InternalParameters)
	}
}

// TestArchive runs the binary of the archive, with what stands beside it.
func TestArchive(t *testing.T) {
	dir := dist(t)
	if host.os == "windows" {
		t.Skip("a zip")
	}
	top := t.TempDir()
	unpack(t, gunzip(t, one(t, dir, "kuji_*_"+host.os+"_"+host.arch+".tar.gz")), top)
	top = one(t, top, "kuji_*")
	kuji := filepath.Join(top, "kuji")
	out, err := output(t.Context(), top, nil, kuji, "version", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var version struct {
		Version, Commit string
		Modified        bool
	}
	if err := json.Unmarshal([]byte(out), &version); err != nil {
		t.Fatal(err)
	}
	head, err := output(t.Context(), "../..", nil, "git", "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if version.Commit != strings.TrimSpace(head) || version.Modified || !strings.HasPrefix(version.Version, "v") {
		t.Errorf("the binary says %+v; HEAD is %s", version, head)
	}
	if !strings.Contains(filepath.Base(top), strings.TrimPrefix(version.Version, "v")) {
		t.Errorf("%s is not called by the version %s", top, version.Version)
	}
	if _, err := output(t.Context(), top, nil, kuji, "catalog", "check", "examples/instant-win.yaml"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "examples/web/index.html", "man/kuji-serve.1", "completions/_kuji", "completions/kuji.fish", "completions/kuji.ps1"} {
		if info, err := os.Stat(filepath.Join(top, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := output(t.Context(), top, nil, "bash", "-n", "completions/kuji.bash"); err != nil {
		t.Error(err)
	}
	notices, err := os.ReadFile(filepath.Join(top, "THIRD-PARTY-NOTICES"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(kuji)
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range info.Deps {
		if !bytes.Contains(notices, []byte("\n"+dep.Path+" "+dep.Version+": ")) {
			t.Errorf("no licence of %s %s", dep.Path, dep.Version)
		}
	}
	if !bytes.Contains(notices, []byte("\nGo "+info.GoVersion+": LICENSE")) {
		t.Error("no licence of Go")
	}
}

// TestSBOM compares the list with what the binary says it was built from.
func TestSBOM(t *testing.T) {
	dir := dist(t)
	if host.os == "windows" {
		t.Skip("a zip")
	}
	top := t.TempDir()
	unpack(t, gunzip(t, one(t, dir, "kuji_*_"+host.os+"_"+host.arch+".tar.gz")), top)
	kuji := filepath.Join(one(t, top, "kuji_*"), "kuji")
	info, err := buildinfo.ReadFile(kuji)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(one(t, dir, "*.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		SerialNumber string
		Metadata     struct {
			Component struct {
				Hashes []struct{ Content string }
			}
		}
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(data, &bom); err != nil {
		t.Fatal(err)
	}
	if sum, err := sumOf(kuji); err != nil || bom.Metadata.Component.Hashes[0].Content != sum {
		t.Errorf("the list is of %+v, the binary is %s, %v", bom.Metadata.Component, sum, err)
	}
	listed := map[string]bool{}
	for _, c := range bom.Components {
		listed[c.Name+" "+c.Version] = strings.HasPrefix(c.Purl, "pkg:golang/")
	}
	for _, dep := range info.Deps {
		if !listed[dep.Path+" "+dep.Version] {
			t.Errorf("%s %s is not listed", dep.Path, dep.Version)
		}
	}
	if len(bom.Components) != len(info.Deps)+1 || !listed["std "+info.GoVersion] {
		t.Errorf("%d components, want %d modules and the standard library", len(bom.Components), len(info.Deps))
	}
}

// TestInstall installs, upgrades and removes the packages in a copy of this machine.
func TestInstall(t *testing.T) {
	needLinux(t)
	dir := dist(t)
	for _, format := range []string{"deb", "rpm"} {
		t.Run(format, func(t *testing.T) {
			for _, tool := range map[string][]string{"deb": {"dpkg", "unshare", "setpriv", "gzip"}, "rpm": {"rpm", "unshare", "setpriv", "gzip"}}[format] {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skipf("%s is not installed", tool)
				}
			}
			probe := `mount -t tmpfs tmpfs "$1" && mkdir "$1/u" "$1/w" "$1/m" && mount -t overlay overlay -o "lowerdir=/,upperdir=$1/u,workdir=$1/w" "$1/m"`
			if out, err := exec.Command("unshare", "-m", "sh", "-c", probe, "sh", t.TempDir()).CombinedOutput(); err != nil {
				t.Skipf("needs root and overlays: %v %s", err, out)
			}
			out, err := exec.Command("unshare", "-m", "sh", "testdata/install.sh", format, one(t, dir, "*."+format), t.TempDir()).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
	t.Run("lintian", func(t *testing.T) {
		if testing.Short() {
			t.Skip("takes a while: left out with -short")
		}
		if _, err := exec.LookPath("lintian"); err != nil {
			t.Skip("lintian is not installed")
		}
		cmd := exec.Command("lintian", "--allow-root", "--fail-on", "error,warning", one(t, dir, "*.deb"))
		if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestAPK reads the package of Alpine: three gzip streams that are one tar.
func TestAPK(t *testing.T) {
	needLinux(t)
	top := t.TempDir()
	unpack(t, gunzip(t, one(t, dist(t), "*.apk")), top)
	info, err := os.ReadFile(filepath.Join(top, ".PKGINFO"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pkgname = kuji\n", "license = Apache-2.0\n", "\nurl = https://github.com/kuji-dev/kuji\n"} {
		if !strings.Contains(string(info), want) {
			t.Errorf(".PKGINFO does not have %q:\n%s", want, info)
		}
	}
	for line := range strings.Lines(string(info)) {
		if !strings.Contains(line, " = ") && !strings.HasPrefix(line, "#") {
			t.Errorf(".PKGINFO has the line %q", line)
		}
	}
	for _, name := range []string{"etc/init.d/kuji", "etc/kuji/serve.yaml", "usr/bin/kuji", "usr/share/licenses/kuji/LICENSE", ".post-install", ".post-upgrade", ".pre-deinstall"} {
		if _, err := os.Stat(filepath.Join(top, name)); err != nil {
			t.Error(err)
		}
	}
	for _, script := range []string{"etc/init.d/kuji", ".post-install", ".post-upgrade", ".pre-deinstall", ".post-deinstall"} {
		if _, err := output(t.Context(), top, nil, "sh", "-n", script); err != nil {
			t.Error(err)
		}
	}
	if _, err := output(t.Context(), top, nil, filepath.Join(top, "usr/bin/kuji"), "version"); err != nil {
		t.Error(err)
	}
}

// TestImage checks the image and runs the server with its files as the root directory, as its user.
func TestImage(t *testing.T) {
	needLinux(t)
	f, err := os.Open(one(t, dist(t), "*_image.oci.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	unpack(t, f, dir)
	at, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	top, err := at.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Fatal(err)
	}
	m, err := top.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		t.Fatalf("%+v, %v: want one index of all platforms", m, err)
	}
	index, err := top.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = index.IndexManifest(); err != nil || len(m.Manifests) != 1 || m.Manifests[0].Platform.Architecture != host.arch {
		t.Fatalf("%+v, %v: want one image, for %s", m, err, host)
	}
	img, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		r, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		unpack(t, r, root)
	}
	if c := file.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/bin/kuji"}) || !slices.Equal(c.Cmd, []string{"serve"}) {
		t.Errorf("config %+v", c)
	}
	roots, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
	if n := bytes.Count(roots, []byte("BEGIN CERTIFICATE")); err != nil || n < 100 {
		t.Errorf("%d certificates, %v; want 100 or more", n, err)
	}
	t.Run("serve", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root for chroot")
		}
		cmd := exec.CommandContext(t.Context(), file.Config.Entrypoint[0], append(slices.Clone(file.Config.Cmd), "--listen=127.0.0.1:0", "--json")...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
		cmd.Dir, cmd.Env = file.Config.WorkingDir, file.Config.Env
		var log bytes.Buffer
		cmd.Stderr = &log
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v\n%s", err, log.String())
			}
		}()
		line, err := bufio.NewReader(stdout).ReadBytes('\n')
		if err != nil {
			t.Errorf("%v\n%s", err, log.String())
			return
		}
		var ready struct{ URL, Data string }
		if err := json.Unmarshal(line, &ready); err != nil || ready.Data != "/var/lib/kuji" {
			t.Errorf("ready: %s, %v", line, err)
			return
		}
		resp, err := http.Get(ready.URL + "/readyz")
		if err != nil {
			t.Error(err)
			return
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("/readyz: %s, %v", resp.Status, err)
		}
	})
}
