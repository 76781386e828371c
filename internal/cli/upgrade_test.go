//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/cluster"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

var older = flag.String("older", "", "the `commit` that the older of two builds in TestUpgrade is made of; without it, it is this tree")

// nextCatalog has a word that only the next build knows: see internal/format.
var nextCatalog = strings.Replace(clusterCatalog, "hat: {}", "hat: {}, omen: {kind: probe}", 1)

// two are the builds that meet: this tree and the same with the build tag kuji_probe, which has a format
// level and a word more.
var two struct {
	sync.Once
	older, newer string
	err          error
}

// twoBuilds returns a build and the next one.
func twoBuilds(t *testing.T) (older, newer string) {
	t.Helper()
	two.Do(func() { two.err = buildTwo(t.Context()) })
	if two.err != nil {
		t.Fatal(two.err)
	}
	return two.older, two.newer
}

func buildTwo(ctx context.Context) error {
	dir, err := filepath.Abs("testdata/.build") // kept: the next run has it in no time
	if err != nil {
		return err
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	run := func(in, name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = in
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
		}
		return nil
	}
	two.older, two.newer = "kuji", filepath.Join(dir, "next")
	if err := run(root, "go", "build", "-pgo=off", "-ldflags=-s -w", "-tags", "kuji_probe", "-o", two.newer, "./cmd/kuji"); err != nil || *older == "" {
		return err
	}
	tree := filepath.Join(dir, *older)
	two.older = filepath.Join(dir, "kuji-"+*older)
	if err := run(root, "sh", "-c", fmt.Sprintf("mkdir -p %q && git archive %q | tar -x -C %q", tree, *older, tree)); err != nil {
		return err
	}
	return run(tree, "go", "build", "-pgo=off", "-o", two.older, "./cmd/kuji")
}

// TestUpgradeCluster: a cluster of three nodes is upgraded while it is drawn from, one node after the other;
// one goes back before that is finished. New words are refused until all nodes are new, and somebody has
// said so. Every answer is there once, and the newer build proves every epoch.
func TestUpgradeCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a binary, and starts eight processes")
	}
	t.Parallel()
	was, next := twoBuilds(t)
	c := designTrio(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*clusterPatience)
	defer cancel()
	names := c.flags.Names()
	for _, name := range names {
		c.build[name] = was
		c.start(name)
	}
	c.settled(ctx)
	admin := c.client("n1").admin
	if _, err := admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(clusterCatalog)}); err != nil {
		t.Fatal(err)
	}
	b := &answered{answers: map[string]*kujiv1.Result{}, more: make(chan struct{})}
	stop := c.load(ctx, b, 1)
	turn := func(name, build string) {
		t.Helper()
		c.replace(name, build)
		c.settled(ctx)
		have := 0
		b.until(ctx, t, func() bool { have = len(b.answers); return true })
		b.until(ctx, t, func() bool { return len(b.answers) >= have+20 })
	}
	level := func() (now, newest uint32) {
		t.Helper()
		resp, err := c.client("n1").admin.GetStatus(ctx, &kujiv1.GetStatusRequest{Realm: server.DefaultRealm})
		if err != nil || len(resp.GetRealms()) != 1 {
			t.Fatalf("status: %v, %v", resp, err)
		}
		return resp.GetRealms()[0].GetLevel(), resp.GetRealms()[0].GetNewestLevel()
	}
	refused := func(when string) {
		t.Helper()
		if _, err := c.client("n1").admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(nextCatalog)}); err == nil {
			t.Errorf("%s: a new word is in force", when)
		}
	}
	begun, _ := level()

	turn("n3", next)
	refused("with one new node")
	turn("n3", was) // back
	turn("n3", next)
	turn("n2", next)
	refused("with one old node")
	if resp, err := c.client("n1").admin.FinishUpgrade(ctx, &kujiv1.FinishUpgradeRequest{}); err == nil && resp.GetToLevel() != begun {
		t.Errorf("an upgrade is finished with one old node: %v", resp)
	}
	if now, newest := level(); now != begun || newest != begun {
		t.Errorf("with one old node the realm has level %d of %d, want %d", now, newest, begun)
	}
	turn("n1", next)
	_, err := c.client("n1").admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(nextCatalog)})
	if connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), `catalog "kind: probe" needs format level`) {
		t.Errorf("before the upgrade is finished, a new word: %v", err)
	}
	done, err := c.client("n1").admin.FinishUpgrade(ctx, &kujiv1.FinishUpgradeRequest{Reason: "all nodes are new"})
	if err != nil || done.GetFromLevel() != begun || done.GetToLevel() <= begun || done.GetPosition() == 0 {
		t.Fatalf("finished: %v, %v", done, err)
	}
	if _, err := c.client("n1").admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(nextCatalog)}); err != nil {
		t.Errorf("after it, a new word: %v", err)
	}
	stop()
	c.audit(ctx, b)
	c.proven(ctx, next, len(b.answers))
	c.stopAll()
}

// replace ends a node in order, and starts it again as another build.
func (c *trio) replace(name, build string) {
	c.t.Helper()
	p := c.running[name]
	if err := p.Signal(syscall.SIGTERM); err != nil {
		c.t.Error(err)
	}
	if err := p.wait(); err != nil {
		c.t.Errorf("node %s: %v", name, err)
	}
	c.build[name] = build
	c.start(name)
}

// proven verifies a cluster that runs, with another build.
func (c *trio) proven(ctx context.Context, build string, draws int) {
	c.t.Helper()
	var said, wrong bytes.Buffer
	cmd := exec.CommandContext(ctx, build, "verify", "--json", "--strict", "--cluster", "shop", "--peers", strings.Join(c.flags.peers, ","), "--cluster-key", c.flags.keyFile)
	cmd.Stdout, cmd.Stderr = &said, &wrong
	err := cmd.Run()
	var report verifyJSON
	if bad := json.Unmarshal(said.Bytes(), &report); err != nil || bad != nil || !report.OK || report.Realms[0].Draws != uint64(draws) {
		c.t.Errorf("verify: %v, want %d draws: %s\n%s", err, draws, said.Bytes(), wrong.Bytes())
	}
}

// TestUpgradeServer: one server is upgraded, goes back, is upgraded again, and the upgrade is finished
// without a server. From then on the older build refuses the directory by name, and the newer one has
// its words.
func TestUpgradeServer(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a binary, and starts processes")
	}
	t.Parallel()
	was, next := twoBuilds(t)
	data, i := t.TempDir(), 0
	serve := func(build string, do func(c *rawClient)) {
		t.Helper()
		servedBy(t, build, data, func(c *rawClient) {
			for id := range i { // what the other build answered
				resp, err := c.rewards.Draw(t.Context(), &kujiv1.DrawRequest{RequestId: fmt.Sprint(id), Player: "ann", Pool: "hats"})
				if err != nil || !resp.GetResult().GetReplayed() {
					t.Errorf("draw %d is not remembered: %v, %v", id, resp, err)
				}
			}
			do(c)
			if _, err := c.rewards.Draw(t.Context(), &kujiv1.DrawRequest{RequestId: fmt.Sprint(i), Player: "ann", Pool: "hats"}); err != nil {
				t.Error(err)
			}
			i++
		})
	}
	apply := func(yaml string, code connect.Code) func(c *rawClient) {
		return func(c *rawClient) {
			t.Helper()
			if _, err := c.admin.ApplyCatalog(t.Context(), &kujiv1.ApplyCatalogRequest{Yaml: []byte(yaml)}); code == 0 && err != nil || code != 0 && connect.CodeOf(err) != code {
				t.Errorf("apply: %v, want code %v", err, code)
			}
		}
	}
	run := func(want exitCode, text, build string, args ...string) {
		t.Helper()
		cmd := exec.Command(build, args...)
		out, _ := cmd.CombinedOutput() // its exit code says it
		if got := cmd.ProcessState.ExitCode(); got != int(want) || !strings.Contains(string(out), text) {
			t.Errorf("%s %v: exit %d, want %d and %q:\n%s", filepath.Base(build), args, got, want, text, out)
		}
	}
	serve(was, apply(clusterCatalog, 0))
	track := func(want connect.Code) func(c *rawClient) {
		return func(c *rawClient) {
			_, err := c.admin.SetTrack(t.Context(), &kujiv1.SetTrackRequest{RequestId: "track", Player: "ann", Track: "none", Reason: "for a test"})
			if connect.CodeOf(err) != want {
				t.Errorf("a command of the next level: %v, want %v", err, want)
			}
		}
	}
	serve(next, func(c *rawClient) {
		apply(nextCatalog, connect.CodeFailedPrecondition)(c)
		track(connect.CodeFailedPrecondition)(c)
	})
	serve(was, func(*rawClient) {})
	run(exitOK, "not finished", next, "upgrade", "--data", data)
	run(exitOK, "finished now", next, "upgrade", "--data", data, "--finish", "--reason", "nobody goes back")
	const name = "written by a newer Kuji: format "
	if *older == "" || kuji.FormatLevel() > 1 {
		run(exitRefused, name, was, "serve", "--data", data, "--listen", "127.0.0.1:0")
		run(exitRefused, name, was, "verify", "--data", data)
	}
	serve(next, func(c *rawClient) {
		apply(nextCatalog, 0)(c)
		track(connect.CodeNotFound)(c) // known by now, but there is no such track
	})
	run(exitOK, "good", next, "verify", "--strict", "--data", data)
}

// servedBy serves a data directory with a build, and ends it in order.
func servedBy(t *testing.T, build, data string, do func(c *rawClient)) {
	t.Helper()
	path, err := exec.LookPath(build)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(path, "serve", "--json", "--data", data, "--listen", "127.0.0.1:0")
	cmd.Stderr = &said
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	var ready readyJSON
	if err != nil || json.Unmarshal(line, &ready) != nil {
		_ = cmd.Wait() // it has ended, or is killed with the test
		t.Fatalf("%s does not serve: %v\n%s", filepath.Base(build), err, said.Bytes())
	}
	do(newClient(http.DefaultClient, ready.URL, ""))
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v\n%s", filepath.Base(build), err, said.Bytes())
	}
}

// TestUpgradeData: of a directory that no server has open, upgrade shows the levels and writes nothing, so
// that the build which wrote it can go on. It finishes all realms or none: one that cannot be opened keeps
// the others as they are.
func TestUpgradeData(t *testing.T) {
	t.Parallel()
	const golden = "../../testdata/golden/v1/"
	data := t.TempDir()
	for from, to := range map[string]string{"data": "", "campaign/realms/campaign": "realms/zzz"} { // a log of another name
		if err := os.CopyFS(filepath.Join(data, to), os.DirFS(golden+from)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want exitCode, text string, args ...string) {
		t.Helper()
		cmd := exec.Command("kuji", append([]string{"upgrade"}, args...)...)
		out, _ := cmd.CombinedOutput() // its exit code says it
		if got := cmd.ProcessState.ExitCode(); got != int(want) || !strings.Contains(string(out), text) {
			t.Errorf("%v: exit %d, want %d and %q:\n%s", args, got, want, text, out)
		}
	}
	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.CopyFS(backup, os.DirFS(golden+"backup")); err != nil { // a copy: golden data must never change
		t.Fatal(err)
	}
	was := contents(t, data)
	run(exitOK, "not finished", "--data", data, "--realm", "test")
	run(exitDamage, "realm zzz", "--data", data)
	run(exitUsage, "expected only one of them", "--data", data, "--server", "http://127.0.0.1:1")
	run(exitRefused, "it is a backup", "--data", backup, "--finish")
	node := t.TempDir()
	if err := os.MkdirAll(cluster.Dir(node), 0o700); err != nil {
		t.Fatal(err)
	}
	run(exitRefused, "a node of a cluster", "--data", node, "--finish")
	if !maps.Equal(contents(t, data), was) {
		t.Error("showing the levels has changed the directory")
	}
	run(exitDamage, "realm zzz", "--data", data, "--finish")
	run(exitOK, "not finished", "--data", data, "--realm", "test")
	if err := os.RemoveAll(filepath.Join(data, "realms/zzz")); err != nil {
		t.Fatal(err)
	}
	run(exitOK, "finished now, from level 1", "--data", data, "--finish")
	run(exitOK, "finished\n", "--data", data)
}

// contents returns what is in the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "lock" {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		all[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestUpgradeNoLevels: a server of a build that has no levels says nothing about them. That is not finished.
func TestUpgradeNoLevels(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	if err := printUpgrade(a, upgradeJSON{Realms: []upgradeRealmJSON{{Realm: "shop"}}}, nil); err != nil || !strings.Contains(out.String(), "not begun") {
		t.Errorf("%v: %s", err, out.String())
	}
}
