// Command deploy writes the plain manifests in deploy/kubernetes: what the Helm chart renders to, for
// people who do not use Helm. Its tests check the chart, the manifests and the workflows of GitHub.
//
// It is a module of its own, as Helm needs more than Kuji does.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

const (
	chartDir    = "../../deploy/helm/kuji"
	valuesDir   = "../../deploy/helm" // with the values of each manifest
	manifestDir = "../../deploy/kubernetes"
)

// manifests are rendered, each from the values of its name. Release and namespace are "kuji".
var manifests = []string{"one-node", "three-nodes"}

func main() {
	for _, name := range manifests {
		text, err := manifest(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(manifestDir, name+".yaml"), []byte(text), 0o666)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "deploy: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// manifest renders a manifest.
func manifest(name string) (string, error) {
	values, err := common.ReadValuesFile(filepath.Join(valuesDir, name+".yaml"))
	if err != nil {
		return "", err
	}
	objects, err := render(values)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by make manifests, from deploy/helm: do not edit. docs/how-to/install.md says what to make before:\n"+
		"# the namespace kuji and the Secrets that are named below.\n")
	for _, object := range objects {
		b.WriteString("---\n")
		for line := range strings.Lines(object) {
			if strings.Contains(line, "app.kubernetes.io/managed-by:") || strings.Contains(line, "helm.sh/chart:") {
				continue // nobody's, without Helm
			}
			b.WriteString(line)
		}
	}
	return b.String(), nil
}

func loadChart() (*chart.Chart, error) { return loader.LoadDir(chartDir) }

// render returns the objects of the chart, as YAML, in the order of their files.
func render(values map[string]any) ([]string, error) {
	c, err := loadChart()
	if err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: "kuji", Namespace: "kuji", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range files {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var objects []string
	for _, name := range names {
		for object := range strings.SplitSeq("\n"+files[name], "\n---\n") {
			if object = strings.TrimSpace(object); object != "" {
				objects = append(objects, object+"\n")
			}
		}
	}
	return objects, nil
}
