//go:build unix

package cli

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// opening starts a server that is still opening what it needs: it waits for a
// catalog that comes when the test writes it.
func opening(t *testing.T, prepare func(cmd *exec.Cmd)) (cmd *exec.Cmd, catalog *os.File) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kuji, fifo := filepath.Join(dir, "kuji"), filepath.Join(dir, "catalog.yaml")
	if err := os.Symlink(exe, kuji); err != nil { // under this name it is the command: see TestMain
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(kuji, "serve", "--data", filepath.Join(dir, "data"), "--catalog", fifo, "--listen", "127.0.0.1:0")
	prepare(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if catalog, err = os.OpenFile(fifo, os.O_WRONLY, 0); err != nil { // waits until the server reads
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = catalog.Close() })
	return cmd, catalog
}

// TestSecondSignalWhileOpening: a second signal ends a server that is not ready yet.
func TestSecondSignalWhileOpening(t *testing.T) {
	cmd, _ := opening(t, func(*exec.Cmd) {})
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	patience := time.After(30 * time.Second)
	for sent := 0; ; {
		select {
		case <-ended:
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGINT {
				t.Errorf("it ended with %v, want by the signal", cmd.ProcessState)
			}
			if sent < 2 {
				t.Errorf("it ended after %d signals: nobody caught the first", sent)
			}
			return
		case <-again.C:
			sent++
			_ = cmd.Process.Signal(os.Interrupt) // it may have ended meanwhile
		case <-patience:
			_ = cmd.Process.Kill()
			<-ended
			t.Fatalf("%d signals did not end it", sent)
		}
	}
}

// TestHangupWhileOpening: SIGHUP does not end a server that is not ready yet; it
// reads keys and certificate again once it is.
func TestHangupWhileOpening(t *testing.T) {
	var said io.ReadCloser
	cmd, catalog := opening(t, func(cmd *exec.Cmd) {
		var err error
		if said, err = cmd.StderrPipe(); err != nil {
			t.Fatal(err)
		}
	})
	defer cmd.Process.Kill()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.WriteString("kuji: 1\nitems: {hat: {}}\n"); err != nil {
		t.Fatal(err)
	}
	if err := catalog.Close(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for !strings.Contains(lines.Text(), "read again") {
		if !lines.Scan() {
			t.Fatalf("it ended without having read its keys again: %v", cmd.Wait())
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
