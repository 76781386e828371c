package loadtest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Machine is where a figure was measured. What the system does not tell is empty.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"` // that this process may use
	Platform   string `json:"platform"`
	Kernel     string `json:"kernel"`
	Filesystem string `json:"filesystem"` // of the data directory
}

func thisMachine(dir string) Machine {
	m := Machine{CPU: runtime.GOARCH, Cores: runtime.GOMAXPROCS(0), Platform: runtime.GOOS + "/" + runtime.GOARCH, Filesystem: filesystem(dir)}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(release))
	}
	return m
}

// filesystem names the file system that a directory is on; "" where the system has no list of them.
func filesystem(dir string) (kind string) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	mounts, none := os.ReadFile("/proc/self/mounts")
	if err != nil || none != nil {
		return ""
	}
	longest := ""
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line) // device, place, kind, …
		if len(f) > 2 && strings.HasPrefix(dir+"/", strings.TrimSuffix(f[1], "/")+"/") && len(f[1]) >= len(longest) {
			longest, kind = f[1], f[2]
		}
	}
	return kind
}

func (m Machine) String() string {
	text := fmt.Sprintf("%s, %d cores, %s", m.CPU, m.Cores, m.Platform)
	if m.Kernel != "" {
		text += ", kernel " + m.Kernel
	}
	if m.Filesystem != "" {
		text += ", data on " + m.Filesystem
	}
	if m.Filesystem == "tmpfs" {
		text += " (memory: an fsync costs nothing there; choose a disk with --dir)"
	}
	return text
}
