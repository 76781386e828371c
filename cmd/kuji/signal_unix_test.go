//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestSecondSignalWhileOpening: a server that is still opening what it needs
// can be ended by a second signal. Here it waits for a catalog that never comes.
func TestSecondSignalWhileOpening(t *testing.T) {
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
	cmd := exec.Command(kuji, "serve", "--data", filepath.Join(dir, "data"), "--catalog", fifo, "--listen", "127.0.0.1:0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	writer, err := os.OpenFile(fifo, os.O_WRONLY, 0) // waits until the server reads
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
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
