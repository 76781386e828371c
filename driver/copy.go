package driver

import (
	"context"
	"errors"
)

// Copier is a Driver that takes copies of other drivers' realms, with the same entries at the same
// cursors. A copy is made in this order, so that it can go on after a crash: the files that come
// before the log, the log, then the entries, each after the files that it names.
//
// Package backup makes backups and restores with it. Kafka could not do this, and need not.
type Copier interface {
	// CopyBegun reports whether a realm's copy has a log, and so all files that come before it.
	// ErrExist: the realm is there, and is no copy under way.
	CopyBegun(ctx context.Context, realm string) (bool, error)

	// CopyFiles opens the files of a realm whose copy has not begun. Its log will begin at first.
	CopyFiles(ctx context.Context, realm string, first Cursor) (Files, error)

	// OpenCopy opens a realm to append another one's entries to it. A new log begins at first.
	OpenCopy(ctx context.Context, realm string, first Cursor) (Copy, error)
}

// Copy is a realm that is a copy under way.
type Copy interface {
	Realm
	// Drop closes the realm. Its copy is not complete.
	Drop() error
}

// ErrExist is in the error of a copy that would take the place of a realm.
var ErrExist = errors.New("is there already")
