package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser runs the server in a container. It is nobody's number on usual machines.
const imageUser = 65532

// imageName is where the image is published.
const imageName = "ghcr.io/kuji-dev/kuji"

// image makes one image for all Linux platforms: an OCI layout in a tar, as podman, skopeo and newer
// Dockers load it. It has the binary, certificates, and directories, and nothing else: no shell. The
// tables of time zones are in the binary.
func (b *build) image(context.Context) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	images := 0
	for _, p := range b.targets {
		if p.os != "linux" {
			continue
		}
		img, err := b.oneImage(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
		images++
	}
	if images == 0 {
		return nil
	}
	index = mutate.Annotations(index, b.imageLabels()).(v1.ImageIndex)
	dir := filepath.Join(b.scratch, "image")
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	name := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name": imageName + ":" + b.number(), "org.opencontainers.image.ref.name": b.number(),
	})
	if err := at.AppendIndex(index, name); err != nil {
		return err
	}
	all, err := below(dir, "")
	if err != nil {
		return err
	}
	return create(b.out("kuji_%s_image.oci.tar", b.number()), func(w io.Writer) error { return writeTar(w, all, b.source.time) })
}

func (b *build) imageLabels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "Kuji",
		"org.opencontainers.image.description": "A durable reward engine",
		"org.opencontainers.image.source":      "https://github.com/kuji-dev/kuji",
		"org.opencontainers.image.version":     b.number(),
		"org.opencontainers.image.revision":    b.source.commit,
		"org.opencontainers.image.created":     b.source.time.Format("2006-01-02T15:04:05Z"),
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
}

func (b *build) oneImage(p platform) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, part := range []struct {
		what string
		all  []entry
	}{
		{"certificates, users, directories", b.imageBase()},
		{"the binary", []entry{
			{name: "usr/", mode: 0o755}, {name: "usr/bin/", mode: 0o755},
			{name: "usr/bin/kuji", file: b.binary(p), mode: 0o755},
		}},
	} {
		layer, err := b.layer(part.all)
		if err != nil {
			return nil, err
		}
		img, err = mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: b.source.time}, CreatedBy: "tools/release: " + part.what}})
		if err != nil {
			return nil, err
		}
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = p.os, p.arch, v1.Time{Time: b.source.time}
	file.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", imageUser, imageUser), WorkingDir: "/var/lib/kuji",
		Entrypoint: []string{"/usr/bin/kuji"}, Cmd: []string{"serve"},
		Env:          []string{"PATH=/usr/bin", "KUJI_DATA=/var/lib/kuji"},
		ExposedPorts: map[string]struct{}{"7700/tcp": {}}, Volumes: map[string]struct{}{"/var/lib/kuji": {}},
		Labels: b.imageLabels(),
	}
	if img, err = mutate.ConfigFile(img, file); err != nil {
		return nil, err
	}
	return mutate.Annotations(img, b.imageLabels()).(v1.Image), nil
}

// imageBase is the part of an image that is the same for all platforms.
func (b *build) imageBase() []entry {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // the others are only good together with code that checks more
			_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // into memory
		}
	}
	return []entry{
		{name: "etc/", mode: 0o755}, {name: "etc/kuji/", mode: 0o755},
		{name: "etc/ssl/", mode: 0o755}, {name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", data: roots.Bytes(), mode: 0o644},
		{name: "etc/passwd", data: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nkuji:x:%[1]d:%[1]d:kuji:/var/lib/kuji:/sbin/nologin\n", imageUser), mode: 0o644},
		{name: "etc/group", data: fmt.Appendf(nil, "root:x:0:\nkuji:x:%d:\n", imageUser), mode: 0o644},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755}, {name: "usr/share/", mode: 0o755}, {name: "usr/share/doc/", mode: 0o755}, {name: "usr/share/doc/kuji/", mode: 0o755},
		{name: "usr/share/doc/kuji/LICENSE", file: filepath.Join(b.source.dir, "LICENSE"), mode: 0o644},
		{name: "usr/share/doc/kuji/THIRD-PARTY-NOTICES", file: filepath.Join(b.stage, "THIRD-PARTY-NOTICES"), mode: 0o644},
		{name: "var/", mode: 0o755}, {name: "var/lib/", mode: 0o755},
		{name: "var/lib/kuji/", mode: 0o700, uid: imageUser},
	}
}

// layer packs entries. Its bytes depend on the Go that compresses them: the one that builds the binaries.
func (b *build) layer(all []entry) (v1.Layer, error) {
	f, err := os.CreateTemp(b.scratch, "layer-*")
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	if err := create(f.Name(), func(w io.Writer) error { return writeTar(w, all, b.source.time) }); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(f.Name(), tarball.WithMediaType(types.OCILayer))
}
