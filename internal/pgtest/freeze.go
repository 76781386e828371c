//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Freeze stops all of the server's processes, as a machine does that stands still, until Thaw or Kill.
func (s *Server) Freeze(ctx context.Context) error {
	s.mu.Lock()
	process := s.process
	s.mu.Unlock()
	if process == nil {
		return errors.New("the server does not run")
	}
	if err := process.Signal(syscall.SIGSTOP); err != nil { // now it starts no more
		return err
	}
	for {
		all, err := processes()
		if err != nil {
			return err
		}
		running := !all[process.Pid].is("T")
		for pid, p := range all {
			if p.parent == process.Pid && !p.is("T") && !p.is("Z") {
				_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended
				running = true
			}
		}
		if !running {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not stand still: %w", ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// Thaw undoes Freeze.
func (s *Server) Thaw() error {
	s.mu.Lock()
	process := s.process
	s.mu.Unlock()
	if process == nil {
		return nil
	}
	all, err := processes()
	if err != nil {
		return err
	}
	for pid, p := range all {
		if p.parent == process.Pid {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may have ended
		}
	}
	if err := process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
