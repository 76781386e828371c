package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// buildType says how the parameters of a provenance are to be read.
const buildType = "https://github.com/kuji-dev/kuji/blob/main/docs/internals/packages.md#provenance"

// localBuilder is a builder that nobody vouches for.
const localBuilder = "urn:kuji:builder:local"

// builderOf names who builds, by the environment: a workflow of GitHub, or a machine of somebody.
func builderOf(getenv func(string) string) string {
	if getenv("GITHUB_ACTIONS") != "true" || getenv("GITHUB_WORKFLOW_REF") == "" {
		return localBuilder
	}
	return cmp.Or(getenv("GITHUB_SERVER_URL"), "https://github.com") + "/" + getenv("GITHUB_WORKFLOW_REF")
}

// The statement is an in-toto Statement v1 with a SLSA Provenance v1: https://slsa.dev/spec/v1.1/provenance
type (
	statement struct {
		Type          string     `json:"_type"`
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     predicate  `json:"predicate"`
	}
	resource struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest"`
	}
	predicate struct {
		BuildDefinition buildDefinition `json:"buildDefinition"`
		RunDetails      runDetails      `json:"runDetails"`
	}
	buildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	}
	runDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	}
)

// provenance writes how everything so far was built. It has no signature: GitHub's attestation has one.
func (b *build) provenance(context.Context) error {
	subjects, err := b.sums()
	if err != nil {
		return err
	}
	var targets []string
	for _, p := range b.targets {
		targets = append(targets, p.String())
	}
	s := statement{
		Type: "https://in-toto.io/Statement/v1", Subject: subjects, PredicateType: "https://slsa.dev/provenance/v1",
		Predicate: predicate{BuildDefinition: buildDefinition{
			BuildType:          buildType,
			ExternalParameters: map[string]string{"version": b.version, "targets": strings.Join(targets, ",")},
			InternalParameters: map[string]string{"go": b.infos[b.targets[0]].GoVersion, "pgo": b.pgo, "ldflags": linkFlags},
			ResolvedDependencies: []resource{{
				URI: "git+https://github.com/kuji-dev/kuji@" + b.source.commit, Digest: map[string]string{"gitCommit": b.source.commit},
			}},
		}},
	}
	s.Predicate.RunDetails.Builder.ID = b.builder
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.out("kuji_%s_provenance.intoto.json", b.number()), append(data, '\n'), 0o666)
}

// checksums writes SHA256SUMS, as sha256sum -c reads it.
func (b *build) checksums(context.Context) error {
	all, err := b.sums()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, file := range all {
		fmt.Fprintf(&out, "%s  %s\n", file.Digest["sha256"], file.Name)
	}
	return os.WriteFile(b.out("SHA256SUMS"), out.Bytes(), 0o666)
}

// sums are the files that are published so far, by name.
func (b *build) sums() ([]resource, error) {
	entries, err := os.ReadDir(b.dist) // sorted
	if err != nil {
		return nil, err
	}
	var all []resource
	for _, e := range entries {
		sum, err := sumOf(filepath.Join(b.dist, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, resource{Name: e.Name(), Digest: map[string]string{"sha256": sum}})
	}
	return all, nil
}

func sumOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() // read only: nothing to lose
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
