package main

import (
	"fmt"
	"slices"
	"strings"
)

// platform is what a binary is built for, by Go's names.
type platform struct{ os, arch string }

// platforms is the one list of what a release has binaries for. Those of Linux also get packages and an
// image.
var platforms = []platform{
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"windows", "amd64"},
	{"windows", "arm64"},
}

func (p platform) String() string { return p.os + "/" + p.arch }

// exe is the name of the binary.
func (p platform) exe() string {
	if p.os == "windows" {
		return "kuji.exe"
	}
	return "kuji"
}

// env is what the Go tool must see to build for a platform, whatever the user has set. The lowest
// processor of an architecture will do.
func (p platform) env() []string {
	return []string{
		"GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0",
		"GOFLAGS=", "GOENV=off", "GOEXPERIMENT=", "GOWORK=off", "GOFIPS140=off",
	}
}

// parsePlatforms reads names with commas between them; all for none.
func parsePlatforms(names string) ([]platform, error) {
	if names == "" {
		return platforms, nil
	}
	var all []platform
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("platform %q: expected one of %v", name, platforms)
		}
		if !slices.Contains(all, platforms[i]) {
			all = append(all, platforms[i])
		}
	}
	return all, nil
}
