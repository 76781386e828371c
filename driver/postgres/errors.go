package postgres

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kuji-dev/kuji/driver"
)

// Codes in a server's answers: see PostgreSQL's appendix of error codes.
const (
	codeFull          = "53100"
	codeDamaged       = "XX001"
	codeIndexDamaged  = "XX002"
	codeUnique        = "23505"
	codeRights        = "42501"
	codeNoTable       = "42P01"
	codeNoSchema      = "3F000"
	codeReadOnly      = "25006"
	codeNoStatement   = "26000" // a prepared statement is not there
	codeSameStatement = "42P05" // or is there already
)

// errWarned is in the error of a commit that did not wait for what it should have waited for.
var errWarned = errors.New("the commit did not wait for the standby")

// ClusterError is the error of a schema that is another cluster's.
type ClusterError struct {
	Schema     string
	Has, Wants string // names of clusters
}

func (e *ClusterError) Error() string {
	return fmt.Sprintf("schema %q belongs to cluster %q, and this is %q: give each its own by schema=NAME in the URL", e.Schema, e.Has, e.Wants)
}

// VersionError is the error of a schema that a newer version has made.
type VersionError struct {
	Schema     string
	Has, Knows int // versions
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("schema %q has version %d, and this build knows versions up to %d: a newer one made it", e.Schema, e.Has, e.Knows)
}

// codeOf returns the code of a server's answer, or "" if err is no answer.
func codeOf(err error) string {
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		return answer.Code
	}
	return ""
}

// lasting has the classes of codes that the same statement would get again: the statement, the data, the
// rights or the database itself are wrong.
var lasting = []string{"0A", "22", "23", "28", "3D", "3F", "42", "54"}

// stays reports whether a server would answer so again.
func stays(code string) bool {
	switch code {
	case "", codeNoStatement, codeSameStatement:
		return false
	case codeFull, codeDamaged, codeIndexDamaged:
		return true
	}
	return slices.Contains(lasting, code[:2])
}

// final reports whether the same call would fail again with this error.
func final(err error) bool {
	if stays(codeOf(err)) || slices.ContainsFunc([]error{
		driver.ErrNotExist, driver.ErrExist, driver.ErrLocked, driver.ErrFull, driver.ErrClosed, errReadOnly, errOtherCut, errChunks,
	}, func(e error) bool { return errors.Is(err, e) }) {
		return true
	}
	return isA[*driver.CorruptError](err) || isA[*driver.CutError](err) || isA[*driver.TrimmedError](err) ||
		isA[*ClusterError](err) || isA[*VersionError](err)
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// known adds to a server's error what it means.
func known(err error) error {
	switch codeOf(err) {
	case codeFull:
		if !errors.Is(err, driver.ErrFull) {
			return fmt.Errorf("%w: %w", driver.ErrFull, err)
		}
	case codeDamaged, codeIndexDamaged:
		if !isA[*driver.CorruptError](err) {
			return &driver.CorruptError{Place: "the database", Err: err}
		}
	case codeRights:
		return fmt.Errorf("a right is missing, see package driver/postgres for those needed: %w", err)
	}
	return err
}
