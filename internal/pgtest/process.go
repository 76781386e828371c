//go:build unix

package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Start starts the server, which does not run, and waits until it lets people in: a server that was killed
// recovers first.
func (s *Server) Start(ctx context.Context) error {
	said, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer said.Close()
	cmd := exec.Command(tool("postgres"), "-D", s.data())
	cmd.Stdout, cmd.Stderr = said, said
	s.user(cmd)
	bind(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.mu.Lock()
	s.process, s.ended = cmd.Process, ended
	s.mu.Unlock()
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended stands in its log
		s.mu.Lock()
		defer s.mu.Unlock()
		s.process = nil
	}()
	for {
		c, err := s.connect(ctx)
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-ended:
			return fmt.Errorf("PostgreSQL did not start: %s", s.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not let anybody in: %w: %s", err, s.lastWords())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Ended returns a channel that is closed when the server, which was started, has ended by itself or not.
func (s *Server) Ended() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Stop stops the server in good order, but ends its connections.
func (s *Server) Stop(ctx context.Context) error { return s.end(ctx, syscall.SIGINT) }

// end ends the server by a signal, and waits.
func (s *Server) end(ctx context.Context, how syscall.Signal) error {
	s.mu.Lock()
	process, ended := s.process, s.ended
	s.mu.Unlock()
	if process == nil {
		return nil
	}
	if err := process.Signal(how); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("PostgreSQL does not end: %w: %s", ctx.Err(), s.lastWords())
	}
}

// Kill kills all of the server's processes at once, as a crash of its machine does, but for what the kernel
// has of its files. Start starts it again.
func (s *Server) Kill() error {
	s.mu.Lock()
	process, ended := s.process, s.ended
	s.mu.Unlock()
	if process == nil {
		return nil
	}
	// A server that stands still starts no more processes while they are counted.
	if err := process.Signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	all, err := processes()
	if err != nil {
		return errors.Join(err, process.Kill())
	}
	var killed []int
	for pid, p := range all {
		if p.parent == process.Pid {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			killed = append(killed, pid)
		}
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-ended
	for wait := true; wait; { // nobody else can hold a killed process back, so it ends soon
		if all, err = processes(); err != nil {
			return err
		}
		wait = false
		for _, pid := range killed {
			if p, ok := all[pid]; ok && strings.HasPrefix(p.title, "postgres") && !p.is("Z") {
				wait = true
			}
		}
		if wait {
			time.Sleep(time.Millisecond)
		}
	}
	return s.clear()
}

// Close ends the server and removes all that it had.
func (s *Server) Close() error {
	err := s.Resume()
	if killed := s.Kill(); killed != nil {
		err = errors.Join(err, killed)
	}
	if s.o.Disk != 0 && s.dir != "" {
		err = errors.Join(err, unmount(s.disk()))
	}
	for _, dir := range []string{s.dir, s.sockets} {
		if dir != "" {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// process is one of this machine.
type process struct {
	parent int
	state  string
	title  string
}

// is reports whether it is in a state: T, stopped; Z, ended but not buried.
func (p process) is(state string) bool { return strings.HasPrefix(p.state, state) }

// processes returns the processes of this machine by their numbers.
func processes() (map[int]process, error) {
	all := map[int]process{}
	add := func(pid, parent, state, title string) {
		number, err := strconv.Atoi(pid)
		of, err2 := strconv.Atoi(parent)
		if err == nil && err2 == nil {
			all[number] = process{parent: of, state: state, title: title}
		}
	}
	if stats, _ := filepath.Glob("/proc/[0-9]*/stat"); len(stats) > 0 {
		for _, name := range stats {
			stat, err := os.ReadFile(name)
			if err != nil {
				continue // it has ended
			}
			// 17 (postgres) S 1 ...: the title may have parentheses of its own.
			open, shut := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
			if open < 0 || shut < 0 {
				continue
			}
			if rest := strings.Fields(string(stat[shut+1:])); len(rest) > 1 {
				add(strings.TrimSpace(string(stat[:open])), rest[1], rest[0], string(stat[open+1:shut]))
			}
		}
		return all, nil
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=,comm=").Output()
	if err != nil {
		return nil, fmt.Errorf("ps: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 3 {
			add(f[0], f[1], f[2], filepath.Base(f[3]))
		}
	}
	return all, nil
}

// unprivileged returns what makes a command run as a user that PostgreSQL accepts, which root is not, and
// gives that user directories.
func unprivileged(dirs ...string) (func(*exec.Cmd), error) {
	if os.Getuid() != 0 {
		return func(*exec.Cmd) {}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		for _, dir := range dirs {
			if err := os.Chown(dir, int(uid), int(gid)); err != nil {
				return nil, err
			}
		}
		return func(cmd *exec.Cmd) {
			cmd.Dir = dirs[0]
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}
