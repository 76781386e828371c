package loadtest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine is where a figure was measured. Fields that the system does not
// tell are empty.
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
