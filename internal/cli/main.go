// Package cli is the commands of the binary: the server, its clients and its tools.
//
// Every command is a thin shell: it reads flags, calls package server, package kuji or the API over
// the network, and writes what came back as a table or as one JSON object. No rule of the game and no
// handler may enter here.
package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Main runs the command that the process's arguments name, by a wall clock, and returns the exit code.
func Main(now func() time.Time) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := os.UserConfigDir()
	if err != nil {
		config = "" // as of a service without a home: it has no contexts
	}
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, now: now, configDir: config}
	return int(a.run(ctx, os.Args[1:]))
}
