//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// TestClusterBackup backs up a cluster that is drawn from, through a node that dies in the middle: the next
// run goes on. What was acknowledged before a backup is in it, once. It restores to a data directory and to
// a new cluster, which prove every epoch and give the same answers. Damage in it is found. Then two disks of
// the old cluster are lost, and a new one is made of the third.
func TestClusterBackup(t *testing.T) {
	if testing.Short() {
		t.Skip("starts six processes")
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*clusterPatience)
	defer cancel()
	c := newTrio(t)
	c.settled(ctx)
	if _, err := c.client("n1").admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(clusterCatalog)}); err != nil {
		t.Fatal(err)
	}
	for list := range 8 { // more than what connections hold
		codes := make([]string, 8128) // too many for an entry of the log: they are in a file
		for i := range codes {
			codes[i] = fmt.Sprintf("%0128d", i)
		}
		if _, err := c.client("n1").admin.ImportCodes(ctx, &kujiv1.ImportCodesRequest{List: fmt.Sprint("list-", list), Codes: codes}); err != nil {
			t.Fatal(err)
		}
	}
	b := &answered{answers: map[string]*kujiv1.Result{}, more: make(chan struct{})}
	stop := c.load(ctx, b, 3)
	count := func() (n int) { b.until(ctx, t, func() bool { n = len(b.answers); return true }); return n }
	b.until(ctx, t, func() bool { return len(b.answers) >= 100 })

	backup := filepath.Join(c.dir, "backup")
	c.mu.Lock()
	servers := strings.Join([]string{c.urls["n1"], c.urls["n2"], c.urls["n3"]}, ",")
	c.mu.Unlock()
	slow := exec.CommandContext(ctx, c.path(), "backup", "--to", backup, "--server", servers, "--rate", "1000000", "--check=false")
	if err := slow.Start(); err != nil {
		t.Fatal(err)
	}
	for ctx.Err() == nil { // the files are under way for some seconds
		if files, err := filepath.Glob(filepath.Join(backup, "realms/default/log/*")); err == nil && len(files) > 0 {
			break
		}
		moment()
	}
	if err := slow.Process.Signal(syscall.SIGSTOP); err != nil { // it takes nothing more, however long the rest takes
		t.Fatal(err)
	}
	leader := c.settled(ctx)
	if err := c.running[leader].Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.running[leader].wait()
	if err := slow.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := slow.Wait(); err == nil || slow.ProcessState.ExitCode() != int(exitUnreachable) {
		t.Errorf("the backup through a leader that died: %v", err)
	}
	had, before := map[string]*kujiv1.Result{}, count()
	b.until(ctx, t, func() bool { return len(b.answers) > before }) // another node leads
	b.until(ctx, t, func() bool { maps.Copy(had, b.answers); return true })
	for { // the next run may come too early
		said, code := c.kuji(ctx, "backup", "--to", backup, "--server", servers)
		if code == 0 {
			break
		}
		if code != int(exitUnreachable) || ctx.Err() != nil {
			t.Fatalf("backup: exit %d: %s", code, said)
		}
	}
	c.start(leader)
	c.settled(ctx)
	stop()
	if said, code := c.kuji(ctx, "backup", "--to", backup, "--server", servers, "--json"); code != 0 || !strings.Contains(said, `"state_hash"`) {
		t.Fatalf("the next backup: exit %d: %s", code, said)
	}
	before = len(had)
	maps.Copy(had, b.answers)
	if len(had) == before {
		t.Error("nothing came after the first backup")
	}
	c.stopAll()

	t.Run("what is left", func(t *testing.T) {
		for name, check := range map[string]func(ctx context.Context, t *testing.T){
			"the backup": func(ctx context.Context, t *testing.T) { // one restore at a time
				c.restoreAlone(ctx, t, backup, had)
				c.restoreOne(ctx, t, backup)
				c.restoreTrio(ctx, t, backup, had)
			},
			"one disk of three": func(ctx context.Context, t *testing.T) { c.forceNew(ctx, t, had) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), 2*clusterPatience)
				defer cancel()
				check(ctx, t)
			})
		}
	})
	ctx, cancel = context.WithTimeout(t.Context(), clusterPatience)
	defer cancel()
	c.damageBackup(ctx, backup)
}

// path returns the path of the program.
func (c *trio) path() string {
	c.t.Helper()
	path, err := exec.LookPath("kuji")
	if err != nil {
		c.t.Fatal(err)
	}
	return path
}

// kuji runs a command and returns what it said and its exit code.
func (c *trio) kuji(ctx context.Context, args ...string) (said string, code int) {
	c.t.Helper()
	cmd := exec.CommandContext(ctx, c.path(), args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		c.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// restoreAlone restores a backup to a data directory. With the cluster's key every epoch can be proven, and
// without it all but the one that the backup ended in.
func (c *trio) restoreAlone(ctx context.Context, t *testing.T, backup string, had map[string]*kujiv1.Result) {
	t.Helper()
	for _, with := range []bool{true, false} {
		data := filepath.Join(c.dir, fmt.Sprint("alone-", with))
		args := []string{"restore", "--from", backup, "--data", data}
		if with {
			args = append(args, "--seal-key", c.flags.keyFile, "--of-cluster", "shop")
		}
		if said, code := c.kuji(ctx, args...); code != 0 || strings.Contains(said, "cannot be proven") == with {
			t.Fatalf("restore, with the key %v: exit %d: %s", with, code, said)
		}
		e, err := kuji.Open(data, kuji.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Realm("default")
		if err != nil {
			t.Fatal(err)
		}
		for id, want := range had {
			got, err := r.Result(ctx, id)
			if err != nil || got.Seen != kuji.Answered || got.Result.Receipt.Position != want.GetReceipt().GetPosition() {
				t.Fatalf("draw %s: %+v, %v, want that of %v", id, got, err, want)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		want := 0
		if !with {
			want = int(exitDamage)
		}
		if said, code := c.kuji(ctx, "verify", "--strict", "--data", data); code != want {
			t.Errorf("verify a restored directory, with the key %v: exit %d: %s", with, code, said)
		}
	}
}

// restoreOne restores a backup to a cluster of one node, whose name and key are others. What is there
// already is not restored again.
func (c *trio) restoreOne(ctx context.Context, t *testing.T, backup string) {
	t.Helper()
	key := filepath.Join(c.dir, "other-key")
	if err := writeClusterKey(key); err != nil {
		t.Fatal(err)
	}
	args := []string{"restore", "--from", backup, "--cluster", "one", "--node", "n1", "--peers", fmt.Sprintf("n1=127.0.0.1:%d", c.port()),
		"--cluster-key", key, "--data", filepath.Join(c.dir, "one")}
	said, code := c.kuji(ctx, args...)
	if code != 0 || !strings.Contains(said, "cannot be proven") {
		t.Errorf("restore with another key: exit %d: %s", code, said)
	}
	if said, code := c.kuji(ctx, args...); code != int(exitRefused) || !strings.Contains(said, "is there already") {
		t.Errorf("restore again: exit %d: %s", code, said)
	}
}

// restoreTrio restores a backup to a new cluster of the same name and key, whose nodes then start.
func (c *trio) restoreTrio(ctx context.Context, t *testing.T, backup string, had map[string]*kujiv1.Result) {
	t.Helper()
	n := designTrio(t)
	n.flags.keyFile = c.flags.keyFile
	n.meet()
	end := n.keep(ctx, "n1", "n3")
	said, code := n.kuji(ctx, append([]string{"restore", "--from", backup, "--json"}, n.as("n2")...)...)
	var report verifyJSON
	if err := json.Unmarshal([]byte(said), &report); err != nil || code != 0 || !report.OK || report.Cluster != "shop" {
		t.Fatalf("restore to a cluster: %v, exit %d, %s", err, code, said)
	}
	end()
	n.serves(ctx, had)
}

// as returns the flags of a node.
func (c *trio) as(name string) []string {
	return []string{"--cluster", c.flags.Name, "--node", name, "--peers", strings.Join(c.flags.peers, ","), "--cluster-key", c.flags.keyFile, "--data", filepath.Join(c.dir, name)}
}

// keep lets nodes keep their part of what another node restores, until end is called.
func (c *trio) keep(ctx context.Context, names ...string) (end func()) {
	c.t.Helper()
	var kept []*exec.Cmd
	for _, name := range names {
		cmd := exec.CommandContext(ctx, c.path(), append([]string{"restore"}, c.as(name)...)...)
		cmd.Stderr = &bytes.Buffer{}
		if err := cmd.Start(); err != nil {
			c.t.Fatal(err)
		}
		kept = append(kept, cmd)
	}
	return func() {
		c.t.Helper()
		for _, cmd := range kept {
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				c.t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				c.t.Errorf("a node that kept its part: %v, %v", err, cmd.Stderr)
			}
		}
	}
}

// serves starts a cluster that was restored. It has these answers, goes on, and proves every epoch.
func (c *trio) serves(ctx context.Context, had map[string]*kujiv1.Result) {
	c.t.Helper()
	for _, name := range c.flags.Names() {
		c.start(name)
	}
	c.settled(ctx)
	b := &answered{answers: had}
	for _, r := range had {
		if r.GetOutcomes()[0].GetEntry() == "royal" {
			b.crowns++
		}
	}
	c.audit(ctx, b)
	if _, err := c.draw(ctx, "after all that", 0); err != nil {
		c.t.Fatal(err)
	}
	if said, code := c.kuji(ctx, "verify", "--strict", "--cluster", c.flags.Name, "--peers", strings.Join(c.flags.peers, ","), "--cluster-key", c.flags.keyFile); code != 0 {
		c.t.Errorf("verify: exit %d: %s", code, said)
	}
	c.stopAll()
}

// damageBackup changes a byte of a backup's log, and then one of a payload's file.
func (c *trio) damageBackup(ctx context.Context, backup string) {
	t := c.t
	t.Helper()
	for i, of := range []string{"log/*", "snapshots/*.payload"} {
		files, err := filepath.Glob(filepath.Join(backup, "realms/default", of))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", of, files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		at := 20000
		if i == 0 { // in an entry: between entries only verify looks
			at += bytes.Index(data[at:], []byte("KJE3"))
		}
		data[at] ^= 1
		if err := os.WriteFile(files[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"verify", "--data", backup},
			{"restore", "--from", backup, "--data", filepath.Join(c.dir, fmt.Sprint("damaged", i))},
			{"restore", "--from", backup, "--cluster", "bad", "--node", "n1", "--peers", "n1=127.0.0.1", "--cluster-key", c.flags.keyFile, "--data", filepath.Join(c.dir, "bad")},
		} {
			if said, code := c.kuji(ctx, args...); code != int(exitDamage) {
				t.Errorf("%s damaged: %s: exit %d: %s", of, args[0], code, said)
			}
		}
		data[at] ^= 1
		if err := os.WriteFile(files[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
