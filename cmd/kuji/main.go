// Command kuji is the server, its clients and its tools in one binary.
//
// Every command is a thin shell: it reads flags, calls package server, package
// kuji or the API over the network, and writes what came back as a table or as
// one JSON object. No rule of the game and no handler may enter here.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	os.Exit(int(mainExit(time.Now)))
}

// mainExit runs the process's arguments by a wall clock and returns its exit code.
func mainExit(now func() time.Time) exitCode {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := os.UserConfigDir()
	if err != nil {
		config = "" // as of a service without a home: it has no contexts
	}
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, now: now, configDir: config}
	return a.run(ctx, os.Args[1:])
}
