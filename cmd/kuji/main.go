// Command kuji is the server, its clients and its tools in one binary: see package cli.
package main

import (
	"os"
	"time"

	"github.com/kuji-dev/kuji/internal/cli"
)

func main() { os.Exit(cli.Main(time.Now)) }
