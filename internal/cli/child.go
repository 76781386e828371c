package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// child is a server in a process of its own, so that killing it is the real thing.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser // its end tells the child that the parent has ended
	ready readyJSON
	log   string        // path of the file that its standard error goes to
	done  chan struct{} // closed when the process has ended
	err   error         // how it ended; read after done
}

// readyTimeout is how long a server may take from start to ready.
const readyTimeout = 20 * time.Second

// startChild starts "kuji serve" with args, and env added to this process's environment, and returns when
// it is ready. Settings in KUJI_ variables are not meant for it.
func startChild(ctx context.Context, logFile string, env []string, args ...string) (*child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's file: %w", err)
	}
	cmd := exec.Command(exe, append([]string{"serve", "--json", "--until-eof"}, args...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KUJI_") }), env...)
	cmd.SysProcAttr = ownGroup() // Ctrl-C is the parent's to handle
	return runChild(ctx, cmd, logFile)
}

// runChild starts a server, and returns when it has said that it is ready.
func runChild(ctx context.Context, cmd *exec.Cmd, logFile string) (*child, error) {
	log, err := os.OpenFile(filepath.Clean(logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own handle
	c := &child{cmd: cmd, log: logFile, done: make(chan struct{})}
	c.cmd.Stderr = log
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	line := make(chan []byte, 1)
	go func() {
		first, _ := bufio.NewReader(stdout).ReadBytes('\n') // without a line there is no object in it
		line <- first
		_, _ = io.Copy(io.Discard, stdout)
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	if err := c.await(ctx, line); err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

// await waits for the line that says that the server is ready.
func (c *child) await(ctx context.Context, line <-chan []byte) error {
	select {
	case first := <-line:
		if err := json.Unmarshal(first, &c.ready); err != nil || c.ready.Event != "ready" {
			return fmt.Errorf("the server did not start:\n%s", tail(c.log))
		}
		return nil
	case <-time.After(readyTimeout):
		return fmt.Errorf("the server was not ready within %v:\n%s", readyTimeout, tail(c.log))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kill ends the process without warning, as a power cut would, and waits for its end.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // fails only when it has ended already
	<-c.done
}

// stop asks the process to end in an orderly way and reports when it does not.
func (c *child) stop(timeout time.Duration) error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		_ = c.stdin.Close() // where there are no signals, the end of its input asks the same
	}
	select {
	case <-c.done:
	case <-time.After(timeout):
		c.kill()
		return fmt.Errorf("the server did not stop within %v of SIGTERM:\n%s", timeout, tail(c.log))
	}
	if c.err != nil {
		return fmt.Errorf("the server stopped with %w:\n%s", c.err, tail(c.log))
	}
	return nil
}

// tail returns the last lines of a file, for an error message.
func tail(file string) string {
	data, err := os.ReadFile(filepath.Clean(file))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-20):], "\n  ")
}
