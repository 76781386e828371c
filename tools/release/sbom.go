package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sboms writes, for each binary, what the Go tool says that it was built from, as CycloneDX.
func (b *build) sboms(context.Context) error {
	for _, p := range b.targets {
		data, err := os.ReadFile(b.binary(p))
		if err != nil {
			return err
		}
		bom := b.sbom(p, b.infos[p], sha256.Sum256(data))
		name := b.out("kuji_%s_%s_%s.cdx.json", b.number(), p.os, p.arch)
		if err := create(name, func(w io.Writer) error {
			return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (b *build) sbom(p platform, info *debug.BuildInfo, sum [32]byte) *cdx.BOM {
	purl := func(path, version string) string { return "pkg:golang/" + path + "@" + version }
	main := cdx.Component{
		BOMRef: purl(info.Main.Path, info.Main.Version), Type: cdx.ComponentTypeApplication, Name: "kuji", Version: b.version,
		PackageURL: purl(info.Main.Path, info.Main.Version) + "?type=module&goos=" + p.os + "&goarch=" + p.arch,
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}},
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}
	std := strings.TrimPrefix(info.GoVersion, "go")
	components := []cdx.Component{{
		BOMRef: purl("std", std), Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion,
		PackageURL: purl("std", std) + "?type=module",
	}}
	needs := []string{purl("std", std)}
	for _, dep := range info.Deps {
		m := dep
		if dep.Replace != nil {
			m = dep.Replace
		}
		c := cdx.Component{
			BOMRef: purl(m.Path, m.Version), Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
			PackageURL: purl(m.Path, m.Version) + "?type=module",
		}
		if m.Sum != "" { // as go.sum has it: no hash of one file, so no Hash of CycloneDX
			c.Properties = &[]cdx.Property{{Name: "kuji:go.sum", Value: m.Sum}}
		}
		components = append(components, c)
		needs = append(needs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	// The same binary has the same list, so its number comes from the binary: a UUID of version 8.
	id := sum
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
	bom.Metadata = &cdx.Metadata{Timestamp: b.source.time.Format("2006-01-02T15:04:05Z"), Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &needs}}
	return bom
}
