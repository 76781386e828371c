package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// scratch holds the binary.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kuji-deploy-test-*")
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

var binary = sync.OnceValues(func() (string, error) {
	name := filepath.Join(scratch, "kuji")
	cmd := exec.Command("go", "build", "-trimpath", "-pgo=off", "-o", name, "./cmd/kuji")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return name, nil
})

func kuji(t *testing.T, args ...string) string {
	t.Helper()
	name, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("kuji %v: %v", args, err)
	}
	return string(out)
}

// TestPodsServe starts the binary with exactly the arguments that the chart gives to each pod, and asks it
// as the kubelet does. Directories of a pod are ones of the test, and the pods' addresses are of loopback.
func TestPodsServe(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	for _, name := range []string{"one", "insecure", "three"} {
		t.Run(name, func(t *testing.T) {
			text := variants[name] + "\nredis: {enabled: true}\nsettings: {log-level: warn, drain-delay: 10ms}"
			rendered, err := render(parse(t, text))
			if err != nil {
				t.Fatal(err)
			}
			newPods(t, decode(t, rendered)).serve()
		})
	}
}

// pods are the pods of a set, on this machine.
type pods struct {
	t       *testing.T
	o       objects
	ips     []string // by ordinal
	secrets map[string]map[string]string
	client  http.Client
}

func newPods(t *testing.T, o objects) *pods {
	p := &pods{t: t, o: o}
	net16 := fmt.Sprintf("127.%d.%d", 1+mathrand.IntN(254), mathrand.IntN(255)) // so that two runs do not meet
	for i := range int(*o.StatefulSet.Spec.Replicas) {
		p.ips = append(p.ips, fmt.Sprintf("%s.%d", net16, i+1))
	}
	cert, key := certificate(t, p.ips)
	clusterKey := filepath.Join(t.TempDir(), "key")
	kuji(t, "cluster", "keygen", clusterKey)
	text, err := os.ReadFile(clusterKey)
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(kuji(t, "keys", "new", "--name", "test", "--can", "admin"), "\n")
	p.secrets = map[string]map[string]string{
		"kuji-keys": {"keys.txt": line},
		"kuji-tls":  {"tls.crt": string(cert), "tls.key": string(key)},
		"ck":        {"cluster.key": string(text)},
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	p.client = http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: 5 * time.Second}
	return p
}

// certificate makes one that is good for addresses.
func certificate(t *testing.T, ips []string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	for _, ip := range ips {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// root lays out the directories of a pod, as its volumes and mounts say.
func (p *pods) root() string {
	t, spec, root := p.t, p.o.StatefulSet.Spec.Template.Spec, p.t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o440); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range spec.Containers[0].VolumeMounts {
		dir := filepath.Join(root, m.MountPath)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, v := range spec.Volumes {
			switch {
			case v.Name != m.Name:
			case v.ConfigMap != nil:
				for name, text := range p.o.ConfigMap.Data {
					write(filepath.Join(dir, name), text)
				}
			case v.Secret != nil:
				secret, ok := p.secrets[v.Secret.SecretName]
				if !ok {
					t.Fatalf("no Secret %s", v.Secret.SecretName)
				}
				items := v.Secret.Items
				if len(items) == 0 {
					for key := range secret {
						items = append(items, corev1.KeyToPath{Key: key, Path: key})
					}
				}
				for _, item := range items {
					write(filepath.Join(dir, item.Path), secret[item.Key])
				}
			}
		}
	}
	return root
}

// args are the arguments of a pod: paths below its root, names and addresses those of this test.
func (p *pods) args(i int, root string) []string {
	set := p.o.StatefulSet
	var replace []string
	for _, m := range set.Spec.Template.Spec.Containers[0].VolumeMounts {
		replace = append(replace, "="+m.MountPath+"/", "="+filepath.Join(root, m.MountPath)+"/")
	}
	for j, ip := range p.ips {
		replace = append(replace, fmt.Sprintf("%s-%d.%s.%s.svc", set.Name, j, set.Spec.ServiceName, set.Namespace), ip)
	}
	replace = append(replace, "=0.0.0.0:", "="+p.ips[i]+":", "$(POD_NAME)", fmt.Sprintf("%s-%d", set.Name, i))
	var args []string
	for _, arg := range set.Spec.Template.Spec.Containers[0].Args {
		args = append(args, strings.NewReplacer(replace...).Replace(arg))
	}
	return args
}

// serve starts all pods, waits for what their probes ask, and stops them as a kubelet does.
func (p *pods) serve() {
	t := p.t
	name, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	type process struct {
		cmd   *exec.Cmd
		log   bytes.Buffer
		lines *bufio.Reader
	}
	var all []*process
	for i := range p.ips {
		one := &process{cmd: exec.CommandContext(ctx, name, p.args(i, p.root())...)}
		one.cmd.Env = []string{"PATH=/usr/bin", "KUJI_DATA=/var/lib/kuji"} // as in the image
		one.cmd.Stderr = &one.log
		out, err := one.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		one.lines = bufio.NewReader(out)
		if err := one.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	defer func() {
		for _, one := range all {
			if err := one.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
		for i, one := range all {
			if err := one.cmd.Wait(); err != nil || t.Failed() {
				t.Errorf("pod %d: %v\n%s\n%s", i, err, strings.Join(one.cmd.Args, " "), one.log.String())
			}
		}
	}()
	for i, one := range all {
		line, err := one.lines.ReadString('\n') // says that it serves, or ends with the process
		if err != nil {
			t.Errorf("pod %d: %q, %v", i, line, err)
			return
		}
	}
	c := p.o.StatefulSet.Spec.Template.Spec.Containers[0]
	for i := range all {
		for what, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
			if err := p.ask(ctx, p.ips[i], c.Ports, probe); err != nil {
				t.Errorf("pod %d: %s: %v", i, what, err)
			}
		}
		conn, err := net.Dial("tcp", p.ips[i]+":6380") // the port for Redis clients
		if err != nil {
			t.Error(err)
			continue
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// ask asks what a probe asks until the answer is 200.
func (p *pods) ask(ctx context.Context, ip string, ports []corev1.ContainerPort, probe *corev1.Probe) error {
	var at int32
	for _, port := range ports {
		if port.Name == probe.HTTPGet.Port.StrVal {
			at = port.ContainerPort
		}
	}
	url := fmt.Sprintf("%s://%s:%d%s", strings.ToLower(string(probe.HTTPGet.Scheme)), ip, at, probe.HTTPGet.Path)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := p.client.Get(url)
		if err == nil {
			err = resp.Body.Close()
			if err == nil && resp.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("%s (%v)", resp.Status, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", url, err)
		case <-tick.C:
		}
	}
}

// TestSettingsAreTaken has the server say which settings it takes from the chart.
func TestSettingsAreTaken(t *testing.T) {
	rendered, err := render(parse(t, variants["all"]))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "serve.yaml")
	if err := os.WriteFile(file, []byte(decode(t, rendered).ConfigMap.Data["serve.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	out := kuji(t, "serve", "--config", file, "--data", t.TempDir(), "--print-config")
	for _, want := range []string{`trim-log: "true"`, `sync: "interval"`, `max-in-flight: "100"`, `drain-delay: "5s"`, "https://shop.example"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in force:\n%s", want, out)
		}
	}
}
