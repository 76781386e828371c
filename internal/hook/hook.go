// Package hook puts engines, drivers and logs in a world that a test controls: a file system that
// can crash, and tasks that run in an order of the test's choice. The packages that it controls
// set its variables; the simulator, the tests and packages above them use those. So the public
// surface has nothing that only tests can use.
package hook

import (
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// Open is kuji.Open on a file system. Background work runs as tasks of steps, or on goroutines if
// steps is nil. options is a kuji.Options, and engine is a *kuji.Engine.
var Open func(fs vfs.FS, steps step.Runner, dir string, options any) (engine any, err error)

// OpenDriver is kuji.Open with Options.Driver.
var OpenDriver func(steps step.Runner, options any) (engine any, err error)

// Backup is backup.Write on a file system. source is a backup.Source.
var Backup func(fs vfs.FS, dir, realm string, source any) error

// Restore is backup.Restore on a file system, without a key.
var Restore func(fs vfs.FS, from, to string) error

// Verify is verify.Dir on a file system. seen is a func(kuji.Record), and report is a
// verify.Report. Package verify sets it.
var Verify func(fs vfs.FS, dir, realm string, seen any) (report any, err error)

// WAL puts a log on a file system, and runs its background work as tasks of steps. options is a
// *wal.Options. Nil leaves the machine's files, or goroutines.
var WAL func(options any, fs vfs.FS, steps step.Runner)

// Disk does the same for a driver. options is a *disk.Options.
var Disk func(options any, fs vfs.FS, steps step.Runner)

// Shared runs the messages of a replicated log in memory as tasks of steps.
var Shared func(options any, steps step.Runner)
