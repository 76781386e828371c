//go:build unix

package backends

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// asKuji makes the test's own program kuji, for runs that have no other.
const asKuji = "BACKENDS_AS_KUJI"

// node is a kuji server in a process of its own. It starts with the same arguments and address each time.
type node struct {
	program string
	args    []string
	log     string // file of its standard error

	cmd   *exec.Cmd // nil: it does not run
	ended chan struct{}
	ready struct {
		Event string `json:"event"`
		URL   string `json:"url"`
		Pprof string `json:"pprof"`
	}
}

// start starts the node and waits until it says that it is ready. extra are more flags, for this time only.
func (n *node) start(ctx context.Context, extra ...string) error {
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(n.program, slices.Concat([]string{"serve", "--json", "--until-eof"}, n.args, extra)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KUJI_") }), asKuji+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if _, err := cmd.StdinPipe(); err != nil { // it ends when this process does
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	n.cmd, n.ended = cmd, make(chan struct{})
	first := make(chan []byte, 1)
	go func() {
		defer close(n.ended)
		line, _ := bufio.NewReader(out).ReadBytes('\n') // without a line, it did not start
		first <- line
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}()
	select {
	case line := <-first:
		if err := json.Unmarshal(line, &n.ready); err == nil && n.ready.Event == "ready" {
			return nil
		}
	case <-ctx.Done():
	}
	n.end(syscall.SIGKILL)
	said, err := os.ReadFile(n.log)
	return errors.Join(fmt.Errorf("a server did not start: %s", said[max(0, len(said)-2000):]), ctx.Err(), err)
}

// end ends the node by a signal, and waits.
func (n *node) end(how syscall.Signal) {
	if n.cmd != nil {
		_ = n.cmd.Process.Signal(how) // it may have ended
		<-n.ended
		n.cmd = nil
	}
}

// leads reports whether the node says that it leads a realm.
func (n *node) leads(ctx context.Context, realm string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.ready.URL+"/metrics", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	return err == nil && bytes.Contains(page, fmt.Appendf(nil, "kuji_realm_leads{realm=%q} 1\n", realm))
}

// pause waits, but not after ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
