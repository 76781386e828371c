package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// formats are the packages for Linux.
var formats = []string{"deb", "rpm", "apk"}

// maintainer is who packages name. It is no mailbox: the project has none yet.
const maintainer = "The Kuji authors <noreply@kuji.invalid>"

// packages makes the packages of each binary for Linux.
func (b *build) packages(context.Context) error {
	var staged bool
	for _, p := range b.targets {
		if p.os != "linux" {
			continue
		}
		if !staged {
			if err := b.stagePackage(); err != nil {
				return err
			}
			staged = true
		}
		for _, format := range formats {
			if err := b.onePackage(p, format); err != nil {
				return fmt.Errorf("%s for %s: %w", format, p, err)
			}
		}
	}
	return nil
}

func (b *build) onePackage(p platform, format string) error {
	contents, err := b.packageContents(p, format)
	if err != nil {
		return err
	}
	version, pre := packageVersion(b.version, format)
	script := func(name string) string { return filepath.Join(b.source.dir, "deploy", "package", name) }
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "kuji", Arch: p.arch, Platform: "linux", VersionSchema: "none", Version: version, Prerelease: pre,
		Section: "net", Priority: "optional", Maintainer: maintainer,
		Description: "Durable reward engine: draws from pools with limited stock\n" +
			"Kuji draws weighted rewards from pools with limited stock and grants\n" +
			"them to players. It never gives one prize twice, never loses a prize\n" +
			"it acknowledged, and never gives more than there are.",
		Homepage: "https://github.com/kuji-dev/kuji", License: "Apache-2.0", MTime: b.source.time,
		Overridables: nfpm.Overridables{
			Contents: contents, Umask: 0o022,
			Scripts: nfpm.Scripts{PostInstall: script("postinstall.sh"), PreRemove: script("preremove.sh"), PostRemove: script("postremove.sh")},
			RPM:     nfpm.RPM{BuildHost: "reproducible", Summary: "Durable reward engine: draws from pools with limited stock"},
			APK:     nfpm.APK{Scripts: nfpm.APKScripts{PostUpgrade: script("postinstall.sh")}},
		},
	})
	switch format {
	case "apk":
		info.Description, _, _ = strings.Cut(info.Description, "\n") // its list of packages has one line each
	case "deb":
		info.Depends = []string{"passwd"} // for the user
	case "rpm":
		info.Depends = []string{"/usr/sbin/useradd"}
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := packager.Package(info, &out); err != nil {
		return err
	}
	data := out.Bytes()
	if format == "apk" {
		if data, err = sortedControl(data, b.source.time); err != nil {
			return err
		}
	}
	return os.WriteFile(b.out("%s", packager.ConventionalFileName(info)), data, 0o666)
}

// pseudoVersion is how the Go tool calls a commit that no tag names.
var pseudoVersion = regexp.MustCompile(`^(?:(.*)\.)?(\d{14})-([0-9a-f]{12})$`)

// packageVersion takes a version apart as a kind of package writes it, so that v1.2.3-rc.1 is older than
// v1.2.3 for each of them.
func packageVersion(version, format string) (number, pre string) {
	number, pre, _ = strings.Cut(strings.TrimPrefix(version, "v"), "-")
	pseudo := pseudoVersion.FindStringSubmatch(pre)
	switch {
	case pre == "":
	case format == "apk" && pseudo != nil: // Alpine knows numbers after alpha, beta, pre and rc, and nothing else
		pre = "pre" + pseudo[2]
	case format == "apk":
		pre = strings.ReplaceAll(pre, ".", "")
	default: // a dash begins the packager's own revision
		pre = strings.ReplaceAll(pre, "-", ".")
	}
	return number, pre
}

// stagePackage writes the files of packages that are not in the repository as they are.
func (b *build) stagePackage() error {
	dir := filepath.Join(b.stage, "package")
	if err := os.MkdirAll(filepath.Join(dir, "man"), 0o777); err != nil {
		return err
	}
	pages, err := below(filepath.Join(b.stage, "man"), "")
	if err != nil {
		return err
	}
	for _, page := range pages {
		if err := gzipTo(filepath.Join(dir, "man", page.name+".gz"), page); err != nil {
			return err
		}
	}
	unit, err := packagedUnit(filepath.Join(b.source.dir, "deploy", "systemd", "kuji.service"))
	if err != nil {
		return err
	}
	copyright := fmt.Sprintf("Kuji is at https://github.com/kuji-dev/kuji\n\nCopyright %d the Kuji authors\nLicense: Apache-2.0, in /usr/share/common-licenses/Apache-2.0\n\n"+
		"What the binary contains of others is listed in THIRD-PARTY-NOTICES.gz, with its terms.\n", b.source.time.Year())
	version, pre := packageVersion(b.version, "deb")
	if pre != "" {
		version += "~" + pre
	}
	log := fmt.Sprintf("kuji (%s) unstable; urgency=medium\n\n  * See https://github.com/kuji-dev/kuji/blob/main/CHANGELOG.md\n\n -- %s  %s\n",
		version, maintainer, b.source.time.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
	for name, data := range map[string][]byte{"kuji.service": unit, "copyright": []byte(copyright)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	for name, e := range map[string]entry{
		"changelog.gz":           {data: []byte(log)},
		"CHANGELOG.md.gz":        {file: filepath.Join(b.source.dir, "CHANGELOG.md")},
		"THIRD-PARTY-NOTICES.gz": {file: filepath.Join(b.stage, "THIRD-PARTY-NOTICES")},
	} {
		if err := gzipTo(filepath.Join(dir, name), e); err != nil {
			return err
		}
	}
	return nil
}

func gzipTo(name string, e entry) error {
	data, err := e.content()
	if err != nil {
		return err
	}
	return create(name, func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := z.Write(data); err != nil {
			return err
		}
		return z.Close()
	})
}

// packagedUnit is the unit of deploy/systemd for a package: its binary is in /usr/bin, and its user is one
// that the package makes, so that files in /etc/kuji can belong to it.
func packagedUnit(name string) ([]byte, error) {
	unit, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	head := bytes.Index(unit, []byte("[Unit]"))
	if head < 0 {
		return nil, fmt.Errorf("%s has no section [Unit]", name)
	}
	unit = append([]byte("# The server reads /etc/kuji/serve.yaml. After a change: systemctl restart kuji.\n"), unit[head:]...)
	for _, r := range [][2]string{
		{"/usr/local/bin/kuji ", "/usr/bin/kuji "},
		{"# The data directory is /var/lib/kuji, logs can go to /var/log/kuji. Both belong to a user of the unit.\nDynamicUser=yes\n",
			"# The data directory is /var/lib/kuji, logs can go to /var/log/kuji.\nUser=kuji\nGroup=kuji\n"},
	} {
		if bytes.Count(unit, []byte(r[0])) != 1 {
			return nil, fmt.Errorf("%s does not have, once, %q", name, r[0])
		}
		unit = bytes.Replace(unit, []byte(r[0]), []byte(r[1]), 1)
	}
	return unit, nil
}

// packageContents is what a package installs.
func (b *build) packageContents(p platform, format string) (files.Contents, error) {
	var all files.Contents
	add := func(kind, src, dst string, mode os.FileMode, group string) {
		all = append(all, &files.Content{Source: src, Destination: dst, Type: kind,
			FileInfo: &files.ContentFileInfo{Mode: mode, Owner: "root", Group: group, MTime: b.source.time}})
	}
	file := func(src, dst string) { add(files.TypeFile, src, dst, 0o644, "root") }
	from := func(name ...string) string {
		return filepath.Join(append([]string{b.source.dir, "deploy", "package"}, name...)...)
	}
	staged := func(name string) string { return filepath.Join(b.stage, "package", name) }

	add(files.TypeFile, b.binary(p), "/usr/bin/kuji", 0o755, "root")
	add(files.TypeDir, "", "/etc/kuji", 0o755, "root") // the scripts give it to the group: it can hold secrets
	add(files.TypeConfigNoReplace, from("serve.yaml"), "/etc/kuji/serve.yaml", 0o644, "root")
	const doc = "/usr/share/doc/kuji/"
	file(staged("THIRD-PARTY-NOTICES.gz"), doc+"THIRD-PARTY-NOTICES.gz")
	switch format {
	case "deb":
		file(staged("copyright"), doc+"copyright")
		file(staged("changelog.gz"), doc+"changelog.gz")
		file(from("lintian-overrides"), "/usr/share/lintian/overrides/kuji")
	default:
		add(kindOfLicense(format), filepath.Join(b.source.dir, "LICENSE"), "/usr/share/licenses/kuji/LICENSE", 0o644, "root")
		file(staged("CHANGELOG.md.gz"), doc+"CHANGELOG.md.gz")
	}
	if format == "apk" {
		add(files.TypeFile, from("kuji.openrc"), "/etc/init.d/kuji", 0o755, "root")
	} else {
		file(staged("kuji.service"), "/usr/lib/systemd/system/kuji.service")
	}
	for shell, dst := range map[string]string{
		"bash": "/usr/share/bash-completion/completions/kuji",
		"zsh":  "/usr/share/zsh/site-functions/_kuji",
		"fish": "/usr/share/fish/vendor_completions.d/kuji.fish",
	} {
		if format == "deb" && shell == "zsh" {
			dst = "/usr/share/zsh/vendor-completions/_kuji"
		}
		file(filepath.Join(b.stage, "completions", completions[shell]), dst)
	}
	pages, err := below(staged("man"), "/usr/share/man/man1")
	if err != nil {
		return nil, err
	}
	examples, err := b.examples()
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		file(page.file, page.name)
	}
	for name, example := range examples {
		file(example, doc+"examples/"+name)
	}
	return all, nil
}

// kindOfLicense is the kind of file that a license is: RPM has one of its own, which others leave out.
func kindOfLicense(format string) string {
	if format == "rpm" {
		return files.TypeRPMLicense
	}
	return files.TypeFile
}
