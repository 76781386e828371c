// Package hook opens engines in a world that a test controls: a file system that can crash,
// and tasks that run in an order of the test's choice. Package kuji fills it in; the
// simulator and the tests of this module use it. It is here so that the public surface has
// nothing that only they can use.
package hook

import (
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// Open is kuji.Open on a file system, with what goes on in the background run as steps, nil
// for goroutines. options is a kuji.Options, and the engine a *kuji.Engine.
var Open func(fs vfs.FS, steps step.Runner, dir string, options any) (engine any, err error)

// Verify is kuji.Verify on a file system. seen is a func(kuji.Record), and the report a
// kuji.Report.
var Verify func(fs vfs.FS, dir, realm string, seen any) (report any, err error)
