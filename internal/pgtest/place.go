//go:build unix

package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// place is where a server is: its directories, its address and its settings.
type place struct {
	o        Options
	dir      string // everything that the server has is below it
	sockets  string // a short path, as the names of sockets are short
	address  string // "": it listens on no address
	user     func(*exec.Cmd)
	settings map[string]string
}

// defaults sets the settings of a small server that can be killed, and whose standbys may be paused for as
// long as one likes.
func (p *place) defaults(port string) {
	host, _, _ := net.SplitHostPort(p.address)
	maps.Copy(p.settings, map[string]string{
		"listen_addresses":            host,
		"port":                        port,
		"unix_socket_directories":     p.sockets,
		"shared_buffers":              "32MB",
		"dynamic_shared_memory_type":  "mmap", // a kill leaves nothing outside the directory
		"wal_sender_timeout":          "0",
		"wal_receiver_timeout":        "0",
		"wal_retrieve_retry_interval": "100ms",
		"fsync":                       "off",
	})
	if p.o.Fsync {
		p.settings["fsync"] = "on"
	}
	if p.o.Disk == 0 {
		p.settings["wal_keep_size"] = "512MB"
	} else {
		p.settings["min_wal_size"], p.settings["max_wal_size"] = "2MB", "8MB"
	}
	maps.Copy(p.settings, p.o.Settings)
}

// keepPassword makes initdb, whose arguments it adds to, give the user its password.
func (p *place) keepPassword(args *[]string) error {
	if p.o.Password == "" {
		return nil
	}
	file := filepath.Join(p.dir, "password")
	*args = append(*args, "-A", "scram-sha-256", "--pwfile", file)
	if err := os.WriteFile(file, []byte(p.o.Password+"\n"), 0o600); err != nil {
		return err
	}
	return p.own(file)
}

// own gives a file to the user as whom the server runs: whoever has the directory above.
func (p *place) own(file string) error {
	info, err := os.Stat(filepath.Dir(file))
	if err != nil {
		return err
	}
	if at, ok := info.Sys().(*syscall.Stat_t); ok {
		return os.Chown(file, int(at.Uid), int(at.Gid))
	}
	return nil
}

// install writes the settings into a directory that initdb or pg_basebackup has made.
func (p *place) install() error {
	const ours = "include 'pgtest.conf'\n"
	name := filepath.Join(p.data(), "postgresql.conf")
	conf, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(string(conf), ours) {
		if err := os.WriteFile(name, append(conf, "\n"+ours...), 0o600); err != nil {
			return err
		}
	}
	return p.write()
}

// write writes the settings.
func (p *place) write() error {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.settings)) {
		fmt.Fprintf(&b, "%s = %s\n", name, quote(p.settings[name]))
	}
	name := filepath.Join(p.data(), "pgtest.conf")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		return err
	}
	return p.own(name)
}

func (p *place) disk() string {
	if p.o.Disk == 0 {
		return p.dir
	}
	return filepath.Join(p.dir, "disk")
}

func (p *place) data() string { return filepath.Join(p.disk(), "data") }

func (p *place) logFile() string { return filepath.Join(p.dir, "log") }

// Run runs a program that came with PostgreSQL, and returns what it prints.
func (p *place) Run(ctx context.Context, name string, args ...string) (out []byte, err error) {
	path := tool(name)
	if path == "" {
		return nil, fmt.Errorf("%s: %w", name, ErrNotInstalled)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+p.o.Password)
	p.user(cmd)
	var said strings.Builder
	cmd.Stderr = &said
	if out, err = cmd.Output(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", name, err, out, said.String())
	}
	return out, nil
}

// lastWords returns the end of the server's log.
func (p *place) lastWords() string {
	log, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-2000):])
}

// Log returns all that the server has said.
func (p *place) Log() ([]byte, error) { return os.ReadFile(p.logFile()) }

// clear removes what a killed server has left, so that no process that happens to have the number of one of
// its own is in its way.
func (p *place) clear() error {
	name := filepath.Join(p.data(), "postmaster.pid")
	lock, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if lines := bytes.Split(lock, []byte("\n")); len(lines) > 6 {
		if memory := bytes.Fields(lines[6]); len(memory) == 2 {
			_ = exec.Command("ipcrm", "-m", string(memory[1])).Run() // a few bytes, until the machine is started again
		}
	}
	return os.Remove(name)
}
