//go:build !unix

package rivals

import "os/exec"

func unprivileged(...string) (func(*exec.Cmd), error) { return func(*exec.Cmd) {}, nil }
