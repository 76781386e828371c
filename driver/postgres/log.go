package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuji-dev/kuji/driver"
)

// A log is rows without gaps. It begins with a row without data, and trimming keeps the last row. So
// there is always a row after which the next entry goes, and an append is one statement: insert the row
// after that one, unless one is there. It locks that row, so that no trimming takes it away meanwhile:
// a request that comes very late cannot put an entry where others were trimmed.
//
// An entry counts when its commit has waited for whatever the database is told to wait for. Three things
// can go wrong. The server says by a warning that the wait ended early. The connection breaks. Or the row
// was there when somebody looked, by an earlier attempt whose wait ended early, or that a crash of the
// server ended. In all of these, nobody knows whether a standby has the row. So a row that was found
// counts only after a fence: a write of ours that names the row, and whose commit has waited.

const (
	maxEntry = 1 << 20
	tooSoon  = 50 * time.Millisecond // after an error, before it can make sense to ask again
	old      = 5 * time.Second       // an append under way for so long may have lost its connection
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf returns the CRC32C of data as the database keeps it.
func sumOf(data []byte) int32 { return int32(crc32.Checksum(data, castagnoli)) }

// log is a realm's log. It implements [driver.Log].
type log struct {
	*handle
}

func (l *log) Append(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
	at, err := l.send(ctx, cargo{after: after, data: string(entry)}, l.insert)
	if err != nil {
		return 0, fmt.Errorf("append after %d: %w", after, err)
	}
	return at, nil
}

func (l *log) Begin(ctx context.Context, entry []byte) (driver.Cursor, error) {
	at, err := l.send(ctx, cargo{begin: true, data: string(entry)}, l.insertLast)
	if err != nil {
		return 0, fmt.Errorf("append: %w", err)
	}
	return at, nil
}

// cargo is what an append sends.
type cargo struct {
	after driver.Cursor
	begin bool
	data  string
}

// insertion puts an entry into the log, on a connection of its own.
type insertion func(ctx context.Context, c *conn, what cargo) (driver.Cursor, error)

// send sends an entry and waits for its outcome. The same entry that is still under way is not sent
// again, unless that takes suspiciously long.
func (l *log) send(ctx context.Context, what cargo, op insertion) (driver.Cursor, error) {
	if err := l.mayWrite(); err != nil {
		return 0, err
	}
	if len(what.data) > maxEntry {
		return 0, fmt.Errorf("entry of %d bytes: want at most %d", len(what.data), maxEntry)
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	err := l.heed(ctx, nil)
	var f *flight
	if err == nil {
		f, err = l.depart(ctx, what, op)
	}
	if err == nil {
		err = f.wait(ctx)
	}
	if err == nil {
		return f.at, nil
	}
	if isA[*driver.CutError](err) || errors.Is(err, driver.ErrDeposed) {
		return 0, err
	}
	if l.open() != nil {
		return 0, fmt.Errorf("%w: %w", driver.ErrClosed, driver.ErrUnknown)
	}
	// What the server refuses for good was not appended, if nothing else is under way.
	if err = known(err); final(err) && !l.course.busy() {
		return 0, err
	}
	pause(ctx, tooSoon)
	return 0, fmt.Errorf("%w: %w", driver.ErrUnknown, err)
}

// depart returns a flight that carries an entry, perhaps one that departed earlier.
func (l *log) depart(ctx context.Context, what cargo, op insertion) (*flight, error) {
	if f := l.course.flying(what); f != nil {
		return f, nil
	}
	if err := l.course.lane.enter(ctx); err != nil {
		return nil, err
	}
	return l.course.fly(what, func(end func(*flight)) *flight {
		return l.fly(l.course.lane, func(ctx context.Context, c *conn) (driver.Cursor, error) {
			at, err := op(ctx, c, what)
			if err == nil {
				l.acknowledged(at, []byte(what.data))
			}
			return at, err
		}, end)
	}), nil
}

// acknowledged notes an entry that was appended here.
func (l *log) acknowledged(at driver.Cursor, data []byte) {
	l.course.passed(at, data)
	if tell := l.courses.tell.Load(); tell != nil {
		(*tell)(l.name, at)
	}
}

// insert appends an entry after the one at a cursor.
func (l *log) insert(ctx context.Context, c *conn, what cargo) (driver.Cursor, error) {
	data := []byte(what.data)
	rows, err := c.exec(ctx, `INSERT INTO $.entries (realm, cursor, sum, data)
		SELECT realm, cursor + 1, $3::int, $4::bytea FROM $.entries
		WHERE realm = $1::int AND cursor = $2::bigint AND ($5::int IS NULL OR sum = $5::int) FOR KEY SHARE
		ON CONFLICT DO NOTHING`, l.id, int64(what.after), sumOf(data), data, l.course.sumAt(what.after))
	if err == nil {
		err = c.warned()
	}
	if err != nil {
		return 0, err
	}
	if rows == 0 {
		return l.refused(ctx, c, what)
	}
	return what.after + 1, nil
}

// refused says why an append has inserted nothing.
func (l *log) refused(ctx context.Context, c *conn, what cargo) (driver.Cursor, error) {
	at := what.after + 1
	var first, last *int64
	var before, there *int32
	var data []byte
	err := c.row(ctx, `SELECT x.first, x.last, a.sum, n.sum, n.data FROM
		(SELECT (SELECT min(cursor) FROM $.entries WHERE realm = $1::int) AS first,
			(SELECT max(cursor) FROM $.entries WHERE realm = $1::int) AS last) x
		LEFT JOIN $.entries a ON a.realm = $1::int AND a.cursor = $2::bigint
		LEFT JOIN $.entries n ON n.realm = $1::int AND n.cursor = $2::bigint + 1`, l.id, int64(what.after)).
		Scan(&first, &last, &before, &there, &data)
	if err != nil {
		return 0, err
	}
	known := l.course.sumAt(what.after)
	same := there != nil && string(data) == what.data
	switch {
	case first == nil || driver.Cursor(*last) < what.after || before != nil && known != nil && *before != *known:
		return 0, l.cutAt(ctx, c, what.after)
	case same:
		return at, l.fence(ctx, c, at, *there) // it is there by an earlier attempt
	case there != nil:
		if err := l.recall(ctx, c); err != nil { // a log that was cut may have others there
			return 0, err
		}
		return 0, driver.ErrDeposed
	case driver.Cursor(*first) > what.after:
		return 0, fmt.Errorf("entries were trimmed there: %w", driver.ErrDeposed)
	}
	return 0, errors.New("the entry before was not seen yet, or another was on its way")
}

// insertLast appends an entry to the log's end.
func (l *log) insertLast(ctx context.Context, c *conn, what cargo) (driver.Cursor, error) {
	data := []byte(what.data)
	for range 100 {
		var at int64
		last, sum := l.course.lastSum()
		err := c.row(ctx, `INSERT INTO $.entries (realm, cursor, sum, data)
			SELECT realm, cursor + 1, $2::int, $3::bytea FROM $.entries WHERE realm = $1::int
			AND ($5::int IS NULL OR EXISTS (SELECT 1 FROM $.entries k WHERE k.realm = $1::int AND k.cursor = $4::bigint AND k.sum = $5::int))
			ORDER BY cursor DESC LIMIT 1 FOR KEY SHARE
			ON CONFLICT DO NOTHING RETURNING cursor`, l.id, sumOf(data), data, int64(last), sum).Scan(&at)
		if err == nil {
			return driver.Cursor(at), c.warned()
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return 0, err
		}
		// Another entry was faster, or the last known one is not there any more.
		if err := l.recall(ctx, c); err != nil {
			return 0, err
		}
		if gone, err := l.trimmedAt(ctx, c, last); err != nil {
			return 0, err
		} else if gone {
			l.course.forget(last)
		}
	}
	return 0, errors.New("others were faster each time")
}

// trimmedAt reports whether the entry at a cursor was trimmed.
func (l *log) trimmedAt(ctx context.Context, c *conn, at driver.Cursor) (bool, error) {
	var first *int64
	err := c.row(ctx, `SELECT min(cursor) FROM $.entries WHERE realm = $1::int`, l.id).Scan(&first)
	if err == nil && first == nil {
		return false, l.cutAt(ctx, c, at)
	}
	return err == nil && driver.Cursor(*first) > at, err
}

// fence makes sure that a row which was seen is as durable as one that was just appended: with all rows
// that were there with it. One statement names the row and writes, so that both happen on one server.
func (l *log) fence(ctx context.Context, c *conn, at driver.Cursor, sum int32) error {
	var last int64
	err := c.row(ctx, `UPDATE $.fences SET n = n + 1
		WHERE slot = $1::int AND EXISTS (SELECT 1 FROM $.entries WHERE realm = $2::int AND cursor = $3::bigint AND sum = $4::int)
		RETURNING (SELECT max(cursor) FROM $.entries WHERE realm = $2::int)`, rand.Int32N(slots), l.id, int64(at), sum).Scan(&last)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("entry %d: %w", at, errGone)
	}
	if err == nil {
		err = c.warned()
	}
	if err != nil {
		return fmt.Errorf("entry %d is there, and nobody knows whether it stays: %w", at, err)
	}
	l.course.survives(driver.Cursor(last))
	return nil
}

// errGone is in the error of a row that was seen and cannot be found again.
var errGone = errors.New("it was there and is not any more")

// slots is the number of rows in table fences.
const slots = 32

func (l *log) Last(ctx context.Context) (driver.Cursor, error) {
	_, last, err := l.ends(ctx)
	return last, err
}

func (l *log) First(ctx context.Context) (driver.Cursor, error) {
	first, _, err := l.ends(ctx)
	return first, err
}

// ends returns the cursors of the first entry, or of the next if there is none, and of the last.
func (l *log) ends(ctx context.Context) (first, last driver.Cursor, err error) {
	err = l.do(ctx, l.life, "realm "+l.name, func(ctx context.Context, c *conn) (err error) {
		first, last, err = l.bounds(ctx, c)
		return err
	})
	return first, last, err
}

// bounds is ends on a connection.
func (l *log) bounds(ctx context.Context, c *conn) (first, last driver.Cursor, err error) {
	var low, high int64
	var empty bool
	err = c.row(ctx, `SELECT e.cursor, e.data IS NULL, (SELECT max(cursor) FROM $.entries WHERE realm = $1::int)
		FROM $.entries e WHERE realm = $1::int ORDER BY cursor LIMIT 1`, l.id).Scan(&low, &empty, &high)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, &driver.CorruptError{Place: l.table("entries"), Err: errors.New("the realm is there, but its log has no row")}
	}
	if empty {
		low++
	}
	return driver.Cursor(low), driver.Cursor(high), err
}

// table names a table of this realm, for errors.
func (h *handle) table(name string) string {
	return fmt.Sprintf("realm %s in %s.%s", h.name, h.config.schema, name)
}

// Sync implements [driver.Log]. What was acknowledged is durable already.
func (l *log) Sync(ctx context.Context) error { return cmp.Or(l.open(), ctx.Err()) }

func (l *log) Durable() driver.Cursor { return l.course.durableTo() }

func (l *log) MaxEntry() int { return maxEntry }

// stride is how many entries one statement trims.
const stride = 500

// Trim goes up in steps, each of which leaves a log without gaps. It keeps the last entry.
func (l *log) Trim(ctx context.Context, before driver.Cursor) error {
	for done := false; !done; {
		err := l.write(ctx, fmt.Sprintf("trim realm %s", l.name), func(ctx context.Context, c *conn) error {
			first, last, err := l.bounds(ctx, c)
			if err != nil {
				return err
			}
			to := min(before, last, first+stride)
			done = to >= min(before, last)
			_, err = c.exec(ctx, `DELETE FROM $.entries WHERE realm = $1::int AND cursor < $2::bigint
				AND cursor < (SELECT max(cursor) FROM $.entries WHERE realm = $1::int)`, l.id, int64(to))
			return err
		})
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}
