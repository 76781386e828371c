// Package golden tests that every build opens what older builds wrote: logs, snapshots, the directory
// of a process that was killed, a backup, catalogs, a history. testdata/golden has a directory for
// each version, and no later commit changes it. Only tests belong here.
package golden
