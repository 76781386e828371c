package sim_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/vfs"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

// These variables make this program a server instead of a test: the data directory, the change of the
// disk at which it kills itself (0: never), and the bytes of log between snapshots.
const (
	childDir       = "KUJI_SIM_CHILD_DIR"
	childKill      = "KUJI_SIM_CHILD_KILL"
	childSnapshots = "KUJI_SIM_CHILD_SNAPSHOTS"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(childDir)
	if dir == "" {
		m.Run()
		return
	}
	if err := serve(dir, os.Getenv(childKill)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		panic("the child failed")
	}
}

// serve is the child: a server on the real file system. It closes when its standard input ends.
func serve(dir, kill string) error {
	at, err := strconv.ParseInt(kill, 10, 64)
	if err != nil {
		return err
	}
	snapshots, err := strconv.ParseInt(os.Getenv(childSnapshots), 10, 64)
	if err != nil {
		return err
	}
	opened, err := hook.Open(&killFS{FS: vfs.OS(), at: at}, nil, dir, kuji.Options{SegmentSize: 16 << 10, SnapshotEvery: snapshots, TrimLog: true})
	if err != nil {
		return err
	}
	engine := opened.(*kuji.Engine)
	srv, err := server.New(engine, server.Options{})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	if _, err := fmt.Fprintf(os.Stdout, "http://%s\n", l.Addr()); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return errors.Join(srv.Shutdown(ctx), <-served, engine.Close())
}

// killFS kills its own process, as kill -9 does, before the change of the disk with a number. If that is
// a write, it writes half of it first.
type killFS struct {
	vfs.FS
	at, n int64
}

func (k *killFS) change(half func()) {
	if atomic.AddInt64(&k.n, 1) != k.at {
		return
	}
	half()
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {} // until it is gone
}

func none() {}

func (k *killFS) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &killFile{File: f, fs: k}, nil
}

func (k *killFS) Create(name string) (vfs.File, error) {
	k.change(none)
	return k.wrap(k.FS.Create(name))
}
func (k *killFS) OpenWrite(name string) (vfs.File, error) { return k.wrap(k.FS.OpenWrite(name)) }
func (k *killFS) Remove(name string) error                { k.change(none); return k.FS.Remove(name) }
func (k *killFS) Rename(a, b string) error                { k.change(none); return k.FS.Rename(a, b) }
func (k *killFS) MkdirAll(dir string) error               { k.change(none); return k.FS.MkdirAll(dir) }
func (k *killFS) SyncDir(dir string) error                { k.change(none); return k.FS.SyncDir(dir) }

func (k *killFS) Lock(dir string) (vfs.Dir, error) {
	d, err := k.FS.Lock(dir)
	return killDir{d, k}, err
}

type killDir struct {
	vfs.Dir
	fs *killFS
}

func (d killDir) Sync() error { d.fs.change(none); return d.Dir.Sync() }

type killFile struct {
	vfs.File
	fs *killFS
}

func (f *killFile) WriteAt(p []byte, off int64) (int, error) {
	f.fs.change(func() { _, _ = f.File.WriteAt(p[:len(p)/2], off) })
	return f.File.WriteAt(p, off)
}
func (f *killFile) Sync() error            { f.fs.change(none); return f.File.Sync() }
func (f *killFile) Truncate(n int64) error { f.fs.change(none); return f.File.Truncate(n) }

// child is a server in a process of its own. It is a [service]: after a kill, the first client that
// notices starts it again.
type child struct {
	dir string

	mu     sync.Mutex
	life   int
	err    error // why it could not be started again
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	url    string
	hangUp func()
	gone   chan struct{} // closed when the process has ended
	calls  kujiv1connect.RewardServiceClient
	admin  kujiv1connect.AdminServiceClient

	files     int   // how many it may open; 0: as many as this process
	snapshots int64 // bytes of log between them; 0: very few, so that there is much to interrupt

	count  atomic.Int64
	killAt atomic.Int64 // the call that kills the process; 0: none
	held   bool         // a dead process is not started again: the machine is down
}

// start starts the process, which kills itself at a change of the disk. The
// caller holds mu, or nobody else knows c.
func (c *child) start(kill int64) error {
	cmd := exec.Command(os.Args[0])
	if c.files > 0 {
		cmd = exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0"`, c.files), os.Args[0])
	}
	cmd.Env = append(os.Environ(), childDir+"="+c.dir, fmt.Sprintf("%s=%d", childKill, kill),
		fmt.Sprintf("%s=%d", childSnapshots, max(1<<10, c.snapshots)))
	return c.run(cmd)
}

var address = regexp.MustCompile(`http://\S+`)

// run starts a server with a command that says its address in the first line.
func (c *child) run(cmd *exec.Cmd) error {
	c.cmd = cmd
	var said strings.Builder
	c.cmd.Stderr = &said
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.stdin, c.gone = stdin, make(chan struct{})
	line, _ := bufio.NewReader(stdout).ReadString('\n') // "": it ended before it was ready
	go func(cmd *exec.Cmd, gone chan struct{}) {
		_ = cmd.Wait() // it was killed, most often
		close(gone)
	}(c.cmd, c.gone)
	c.life++
	c.url = address.FindString(line)
	if c.url == "" {
		<-c.gone
		return fmt.Errorf("the server ended before it was ready: %v\n%s", c.cmd.ProcessState, said.String())
	}
	hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second}
	c.hangUp = hc.CloseIdleConnections
	c.calls = kujiv1connect.NewRewardServiceClient(hc, c.url)
	c.admin = kujiv1connect.NewAdminServiceClient(hc, c.url)
	return nil
}

func (c *child) apply(ctx context.Context) error {
	_, err := c.admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Realm: server.DefaultRealm, Yaml: []byte(historyCatalog)})
	return err
}

// kill ends the process as kill -9 does, and waits until it is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.gone
}

// stop closes the server and reports whether that went well.
func (c *child) stop() bool {
	c.hangUp() // or it waits for connections that were never used
	c.stdin.Close()
	<-c.gone
	return c.cmd.ProcessState.Success()
}

func (c *child) now() (kujiv1connect.RewardServiceClient, int, error) {
	if n := c.count.Add(1); n == c.killAt.Load() {
		_ = c.cmd.Process.Kill()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls, c.life, c.err
}

// failed starts the process again if nobody has since.
func (c *child) failed(life int, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if life != c.life || c.err != nil || c.held {
		return err
	}
	select {
	case <-c.gone:
		if err := c.start(0); err != nil {
			c.err = fmt.Errorf("%w: %w", errDead, err)
		}
	case <-time.After(10 * time.Second):
		c.err = fmt.Errorf("%w: a call failed and the process lives on: %w", errDead, err)
	}
	return err
}

func (c *child) ask(ctx context.Context, id string, q question) (reply, error) {
	calls, life, err := c.now()
	if err != nil {
		return reply{}, err
	}
	var out reply
	switch {
	case len(q.acts) > 0:
		var res *kujiv1.Result
		if res, err = send(ctx, calls, q.request(id)); err == nil {
			return q.replyOf(resultOf(res)), nil
		}
	case q.holds:
		var res *kujiv1.GetPlayerResponse
		res, err = calls.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Player: playerNames[q.player]})
		if connect.CodeOf(err) == connect.CodeNotFound {
			return reply{}, nil
		}
		out.known = true
		for _, it := range res.GetPlayer().GetItems() {
			out.holds[slices.Index(itemNames[:], it.GetItem())] = int(it.GetQuantity())
		}
	default:
		var res *kujiv1.GetPoolResponse
		res, err = calls.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: fmt.Sprint("p", q.pool)})
		for i, e := range res.GetPool().GetEntries() {
			out.left[i] = int(e.GetLeft())
		}
	}
	if err != nil {
		return reply{}, c.failed(life, err)
	}
	return out, nil
}

// send sends a request by the call for its kind.
func send(ctx context.Context, calls kujiv1connect.RewardServiceClient, req kuji.Request) (*kujiv1.Result, error) {
	switch r := req.(type) {
	case kuji.Draw:
		res, err := calls.Draw(ctx, &kujiv1.DrawRequest{RequestId: r.ID, Player: r.Player, Pool: r.Pool, Count: uint32(r.Count)})
		return res.GetResult(), err
	case kuji.Register:
		res, err := calls.Register(ctx, &kujiv1.RegisterRequest{RequestId: r.ID, Player: r.Player})
		return res.GetResult(), err
	case kuji.Grant:
		res, err := calls.Grant(ctx, &kujiv1.GrantRequest{RequestId: r.ID, Player: r.Player, Items: stacksOf(r.Items)})
		return res.GetResult(), err
	case kuji.Consume:
		res, err := calls.Consume(ctx, &kujiv1.ConsumeRequest{RequestId: r.ID, Player: r.Player, Items: stacksOf(r.Items)})
		return res.GetResult(), err
	case kuji.Transfer:
		res, err := calls.Transfer(ctx, &kujiv1.TransferRequest{RequestId: r.ID, From: r.From, To: r.To, Items: stacksOf(r.Items)})
		return res.GetResult(), err
	}
	group := req.(kuji.Atomic)
	msg := &kujiv1.AtomicRequest{RequestId: group.ID}
	for _, m := range group.Members {
		msg.Members = append(msg.Members, memberOf(m))
	}
	res, err := calls.Atomic(ctx, msg)
	return res.GetResult(), err
}

func memberOf(req kuji.Request) *kujiv1.Member {
	switch r := req.(type) {
	case kuji.Draw:
		return &kujiv1.Member{Command: &kujiv1.Member_Draw{Draw: &kujiv1.Draw{Player: r.Player, Pool: r.Pool, Count: uint32(r.Count)}}}
	case kuji.Register:
		return &kujiv1.Member{Command: &kujiv1.Member_Register{Register: &kujiv1.Register{Player: r.Player}}}
	case kuji.Grant:
		return &kujiv1.Member{Command: &kujiv1.Member_Grant{Grant: &kujiv1.Grant{Player: r.Player, Items: stacksOf(r.Items)}}}
	case kuji.Consume:
		return &kujiv1.Member{Command: &kujiv1.Member_Consume{Consume: &kujiv1.Consume{Player: r.Player, Items: stacksOf(r.Items)}}}
	}
	r := req.(kuji.Transfer)
	return &kujiv1.Member{Command: &kujiv1.Member_Transfer{Transfer: &kujiv1.Transfer{From: r.From, To: r.To, Items: stacksOf(r.Items)}}}
}

func stacksOf(items []kuji.Stack) []*kujiv1.Stack {
	var all []*kujiv1.Stack
	for _, it := range items {
		all = append(all, &kujiv1.Stack{Item: it.Item, Quantity: it.Quantity})
	}
	return all
}

// resultOf returns the part of a server's result that replyOf looks at.
func resultOf(res *kujiv1.Result) kuji.Result {
	out := kuji.Result{Status: kuji.Status(res.GetStatus() - kujiv1.Status_STATUS_OK), Replayed: res.GetReplayed()}
	for _, o := range res.GetOutcomes() {
		out.Outcomes = append(out.Outcomes, kuji.Outcome{Entry: o.GetEntry()})
	}
	for _, m := range res.GetMembers() {
		out.Members = append(out.Members, resultOf(m))
	}
	return out
}

// detailOf returns the server's details of an error, nil if the error is not the server's.
func detailOf(err error) *kujiv1.ErrorDetail {
	rpc, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return nil
	}
	for _, d := range rpc.Details() {
		if v, err := d.Value(); err == nil {
			if detail, ok := v.(*kujiv1.ErrorDetail); ok {
				return detail
			}
		}
	}
	return nil
}
