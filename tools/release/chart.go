package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// unreleased is the version that the chart and the manifests have in the repository.
const unreleased = "0.0.0-unreleased"

// chart packs the Helm chart, and the plain manifests that it renders to, with the release's version.
func (b *build) chart(context.Context) error {
	chart, err := below(filepath.Join(b.source.dir, "deploy", "helm", "kuji"), "kuji")
	if err != nil {
		return err
	}
	manifests, err := filepath.Glob(filepath.Join(b.source.dir, "deploy", "kubernetes", "*.yaml"))
	if err != nil {
		return err
	}
	for i, e := range chart {
		if e.name != "kuji/Chart.yaml" {
			continue
		}
		if chart[i], err = b.versioned(e); err != nil {
			return err
		}
	}
	if err := b.tarGz(fmt.Sprintf("kuji-chart-%s.tgz", b.number()), chart); err != nil {
		return err
	}
	for _, name := range manifests {
		e, err := b.versioned(entry{file: name})
		if err != nil {
			return err
		}
		if err := os.WriteFile(b.out("kuji_%s_kubernetes_%s", b.number(), filepath.Base(name)), e.data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// versioned puts the release's version into a file in place of the repository's.
func (b *build) versioned(e entry) (entry, error) {
	data, err := e.content()
	if err != nil {
		return e, err
	}
	if !bytes.Contains(data, []byte(unreleased)) {
		return e, fmt.Errorf("%s does not have the version %s", e.file, unreleased)
	}
	e.data, e.file = bytes.ReplaceAll(data, []byte(unreleased), []byte(b.number())), ""
	return e, nil
}
