// Package golden holds what builds of old have written, and the tests that every build since opens
// it: logs, snapshots, a directory that was killed, a backup, catalogs, a history. It stands in
// testdata/golden, one directory a version, which no later commit changes. Only tests live here.
package golden
