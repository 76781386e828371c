//go:build !unix

package cli

import "syscall"

// databaseUser returns as whom PostgreSQL runs: as this user.
func databaseUser(string, ...string) (*syscall.SysProcAttr, error) { return ownGroup(), nil }
