package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// parse reads values as people write them.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// What the tests render the chart with.
var variants = map[string]string{
	"one":      "keys: {secret: kuji-keys}\ntls: {secret: kuji-tls}",
	"insecure": "keys: {secret: kuji-keys}\ninsecure: true",
	"three":    "keys: {secret: kuji-keys}\ntls: {secret: kuji-tls}\ncluster: {enabled: true, keySecret: {name: ck}}",
	"five":     "keys: {secret: kuji-keys}\ninsecure: true\ncluster: {enabled: true, nodes: 5, name: shop, keySecret: {name: ck, key: k}}\npodDisruptionBudget: {enabled: false}",
	"all": `
keys: {secret: kuji-keys, key: k}
tls: {secret: kuji-tls}
image: {digest: "sha256:` + strings.Repeat("0", 64) + `", pullPolicy: Always}
imagePullSecrets: [{name: registry}]
settings: {trim-log: true, sync: interval, max-in-flight: 100, allow-origin: [https://shop.example]}
service: {type: LoadBalancer, port: 443, annotations: {a: b}}
redis: {enabled: true, port: 6379}
persistence: {size: 1Ti, storageClass: fast, accessMode: ReadWriteOncePod}
serviceMonitor: {enabled: true, interval: 15s, labels: {release: prometheus}, keySecret: {name: metrics-key}}
serviceAccount: {annotations: {a: b}}
podAnnotations: {a: b}
podLabels: {c: d}
nodeSelector: {disk: ssd}
tolerations: [{key: k, operator: Exists}]
affinity: {nodeAffinity: {}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
priorityClassName: high
`,
}

// objects are what the chart renders to, decoded.
type objects struct {
	StatefulSet appsv1.StatefulSet
	Services    []corev1.Service
	ConfigMap   corev1.ConfigMap
	Accounts    []corev1.ServiceAccount
	Budgets     []policyv1.PodDisruptionBudget
	Monitors    []serviceMonitor
}

// serviceMonitor has the fields of the Prometheus Operator's that the chart uses.
type serviceMonitor struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port          string `json:"port"`
			Path          string `json:"path"`
			Interval      string `json:"interval"`
			Scheme        string `json:"scheme"`
			Authorization struct {
				Type        string                   `json:"type"`
				Credentials corev1.SecretKeySelector `json:"credentials"`
			} `json:"authorization"`
			TLSConfig *struct {
				ServerName string `json:"serverName"`
				CA         struct {
					Secret corev1.SecretKeySelector `json:"secret"`
				} `json:"ca"`
			} `json:"tlsConfig"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// unmarshalStrict decodes as the API server does: names of fields have upper and lower case.
func unmarshalStrict(text string, into any) error {
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return err
	}
	found, err := kjson.UnmarshalStrict(data, into)
	return errors.Join(append(found, err)...)
}

// decode reads rendered objects by the types of the Kubernetes API. A field that they do not have, one
// that is there twice, and a value of another type are errors.
func decode(t *testing.T, all []string) (o objects) {
	t.Helper()
	seen := map[string]bool{}
	for _, text := range all {
		var head struct {
			metav1.TypeMeta `json:",inline"`
			Metadata        metav1.ObjectMeta `json:"metadata"`
		}
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		strict := func(into any) {
			if err := unmarshalStrict(text, into); err != nil {
				t.Errorf("%s %s: %v\n%s", head.Kind, head.Metadata.Name, err, text)
			}
		}
		switch head.APIVersion + " " + head.Kind {
		case "apps/v1 StatefulSet":
			strict(&o.StatefulSet)
		case "v1 ConfigMap":
			strict(&o.ConfigMap)
		case "v1 Service":
			o.Services = append(o.Services, corev1.Service{})
			strict(&o.Services[len(o.Services)-1])
		case "v1 ServiceAccount":
			o.Accounts = append(o.Accounts, corev1.ServiceAccount{})
			strict(&o.Accounts[len(o.Accounts)-1])
		case "policy/v1 PodDisruptionBudget":
			o.Budgets = append(o.Budgets, policyv1.PodDisruptionBudget{})
			strict(&o.Budgets[len(o.Budgets)-1])
		case "monitoring.coreos.com/v1 ServiceMonitor":
			o.Monitors = append(o.Monitors, serviceMonitor{})
			strict(&o.Monitors[len(o.Monitors)-1])
		default:
			t.Errorf("an object of the kind %s %s", head.APIVersion, head.Kind)
		}
		if errs := validation.IsDNS1035Label(head.Metadata.Name); len(errs) > 0 || head.Metadata.Namespace != "kuji" {
			t.Errorf("%s %q in namespace %q: %v", head.Kind, head.Metadata.Name, head.Metadata.Namespace, errs)
		}
		for key, value := range head.Metadata.Labels {
			if errs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(errs) > 0 {
				t.Errorf("%s %s: label %s: %s: %v", head.Kind, head.Metadata.Name, key, value, errs)
			}
		}
		if id := head.Kind + " " + head.Metadata.Name; seen[id] {
			t.Errorf("%s is there twice", id)
		} else {
			seen[id] = true
		}
	}
	return o
}

// TestLint has Helm look at the chart.
func TestLint(t *testing.T) {
	for name, text := range variants {
		result := lint.RunAll(chartDir, parse(t, text), "kuji")
		for _, m := range result.Messages {
			if m.Severity > support.InfoSev { // it wants an icon, for shops
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// TestObjects checks what the chart renders to, and that its parts fit together.
func TestObjects(t *testing.T) {
	for name, text := range variants {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(parse(t, text))
			if err != nil {
				t.Fatal(err)
			}
			o := decode(t, rendered)
			checkPod(t, o)
			checkServices(t, o)
			clustered := strings.Contains(text, "enabled: true, nodes") || strings.Contains(text, "enabled: true, keySecret")
			if want := map[bool]int32{true: 3, false: 1}[clustered]; name != "five" && *o.StatefulSet.Spec.Replicas != want {
				t.Errorf("%d replicas, want %d", *o.StatefulSet.Spec.Replicas, want)
			}
			if (o.StatefulSet.Spec.Template.Spec.Affinity != nil) != (clustered || name == "all") {
				t.Error("nodes of a cluster, and no others, keep off each other")
			}
			for _, b := range o.Budgets {
				if !maps.Equal(b.Spec.Selector.MatchLabels, o.StatefulSet.Spec.Selector.MatchLabels) || b.Spec.MaxUnavailable.IntValue() != 1 {
					t.Errorf("budget %+v", b.Spec)
				}
			}
			if len(o.Budgets) != map[bool]int{true: 1}[name == "three"] {
				t.Errorf("%d budgets", len(o.Budgets))
			}
			for _, m := range o.Monitors {
				var found int
				for _, s := range o.Services {
					if contains(s.Labels, m.Spec.Selector.MatchLabels) && slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == m.Spec.Endpoints[0].Port }) {
						found++
					}
				}
				if found != 1 {
					t.Errorf("the monitor finds %d services, want 1", found)
				}
			}
		})
	}
}

func contains(all, some map[string]string) bool {
	for key, value := range some {
		if all[key] != value {
			return false
		}
	}
	return true
}

// checkPod checks that the pod's parts name each other, and that it has no rights.
func checkPod(t *testing.T, o objects) {
	t.Helper()
	spec, pod := o.StatefulSet.Spec, o.StatefulSet.Spec.Template.Spec
	if !contains(spec.Template.Labels, spec.Selector.MatchLabels) {
		t.Errorf("selector %v does not select %v", spec.Selector.MatchLabels, spec.Template.Labels)
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, v := range spec.VolumeClaimTemplates {
		volumes[v.Name] = true
	}
	c := pod.Containers[0]
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("mount of the volume %s, which is not there", m.Name)
		}
		delete(volumes, m.Name)
	}
	if len(volumes) > 0 {
		t.Errorf("volumes that nobody mounts: %v", volumes)
	}
	for what, p := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if p == nil || !slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == p.HTTPGet.Port.StrVal }) {
			t.Errorf("%s probe %+v is of no port", what, p)
		}
	}
	if s := c.SecurityContext; s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.Capabilities.Drop[0] != "ALL" || !*pod.SecurityContext.RunAsNonRoot {
		t.Errorf("security context %+v", s)
	}
	if *pod.TerminationGracePeriodSeconds < 40 || *pod.AutomountServiceAccountToken {
		t.Errorf("%d s to stop, token %v", *pod.TerminationGracePeriodSeconds, *pod.AutomountServiceAccountToken)
	}
	if pod.ServiceAccountName != o.Accounts[0].Name || pod.Volumes[0].ConfigMap.Name != o.ConfigMap.Name {
		t.Errorf("account %s, settings %+v", pod.ServiceAccountName, pod.Volumes[0])
	}
	release, err := os.ReadFile("../release/image.go")
	if err != nil {
		t.Fatal(err)
	}
	user := regexp.MustCompile(`(?m)^const imageUser = (\d+)$`).FindSubmatch(release)
	image := regexp.MustCompile(`(?m)^const imageName = "(.*)"$`).FindSubmatch(release)
	if user == nil || image == nil || string(user[1]) != "65532" || *pod.SecurityContext.RunAsUser != 65532 || *pod.SecurityContext.FSGroup != 65532 {
		t.Errorf("the pod runs as %d, the image is made for %q", *pod.SecurityContext.RunAsUser, user)
	}
	if !strings.HasPrefix(c.Image, string(image[1])+":") && !strings.HasPrefix(c.Image, string(image[1])+"@sha256:") {
		t.Errorf("image %s, want one of %s", c.Image, image[1])
	}
}

// checkServices checks that services reach ports of the pod, and that the set has its own.
func checkServices(t *testing.T, o objects) {
	t.Helper()
	own := false
	for _, s := range o.Services {
		if !contains(o.StatefulSet.Spec.Template.Labels, s.Spec.Selector) {
			t.Errorf("service %s selects nothing", s.Name)
		}
		for _, p := range s.Spec.Ports {
			if !slices.ContainsFunc(o.StatefulSet.Spec.Template.Spec.Containers[0].Ports, func(c corev1.ContainerPort) bool { return c.Name == p.TargetPort.StrVal }) {
				t.Errorf("service %s leads to the port %s, which the pod does not have", s.Name, p.TargetPort.StrVal)
			}
		}
		if s.Name == o.StatefulSet.Spec.ServiceName {
			own = s.Spec.ClusterIP == corev1.ClusterIPNone && s.Spec.PublishNotReadyAddresses
		}
	}
	if !own {
		t.Errorf("the set's service %s is not there, or has an address, or leaves out pods that are not ready", o.StatefulSet.Spec.ServiceName)
	}
}

// TestDecodeIsStrict checks that a misspelt field and a value of a wrong type are found.
func TestDecodeIsStrict(t *testing.T) {
	rendered, err := render(parse(t, variants["one"]))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range rendered {
		if !strings.Contains(text, "kind: StatefulSet") {
			continue
		}
		for _, r := range [][2]string{{"readOnlyRootFilesystem:", "readonlyRootFileSystem:"}, {"replicas: 1", "replicas: one"}, {"periodSeconds: 10", "periodSecond: 10"}} {
			bad := strings.Replace(text, r[0], r[1], 1)
			if bad == text {
				t.Errorf("%q is not there", r[0])
			}
			if err := unmarshalStrict(bad, &appsv1.StatefulSet{}); err == nil {
				t.Errorf("%q is taken", r[1])
			}
		}
		return
	}
	t.Error("there is no StatefulSet")
}

// TestRefused checks that values which make no server are refused, with what was expected.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"insecure: true":             "keys.secret",
		"keys: {secret: k}":          "tls.secret",
		"keys: {secret: k}\nx: 1":    "x",
		"keys: {secret: k, keyy: x}": "keyy",
		"keys: {secret: k}\ntls: {secret: t}\ncluster: {enabled: true}":                                        "keySecret",
		"keys: {secret: k}\ntls: {secret: t}\ncluster: {enabled: true, nodes: 4, keySecret: {name: c}}":        "nodes",
		"keys: {secret: k}\ntls: {secret: t}\nsettings: {listen: ':80'}":                                       "listen",
		"keys: {secret: k}\ntls: {secret: t}\nserviceMonitor: {enabled: true}":                                 "keySecret",
		"keys: {secret: k}\ntls: {secret: t}\nterminationGracePeriodSeconds: 5":                                "terminationGracePeriodSeconds",
		"keys: {secret: k}\ntls: {secret: t}\nimage: {digest: 'sha256:12'}":                                    "digest",
		"keys: {secret: k}\ntls: {secret: t}\npersistence: {size: lots}":                                       "size",
		"keys: {secret: k}\ntls: {secret: t}\npersistence: {accessMode: ReadWriteMany}":                        "accessMode",
		"keys: {secret: k}\ntls: {secret: t}\ncluster: {enabled: true, name: 'My Shop', keySecret: {name: c}}": "name",
	} {
		if _, err := render(parse(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n: %v, want an error about %s", text, err, want)
		}
	}
}

// TestManifestsAreCurrent compares the plain manifests with what the chart renders to.
func TestManifestsAreCurrent(t *testing.T) {
	for _, name := range manifests {
		want, err := manifest(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(manifestDir, name+".yaml"))
		if err != nil || string(got) != want {
			t.Errorf("deploy/kubernetes/%s.yaml is not what the chart renders to: run make manifests (%v)", name, err)
		}
		var all []string
		for object := range strings.SplitSeq(want, "---\n") {
			if strings.Contains(object, "kind:") {
				all = append(all, object)
			}
		}
		checkPod(t, decode(t, all))
	}
}
