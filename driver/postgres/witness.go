package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kuji-dev/kuji/driver"
)

// A database that fails over to a standby which lags behind has lost acknowledged entries, and what is
// left is a log without fault. So each process keeps a mark of each log: the last entry that was
// acknowledged to it, or that it read. A log must have that entry, or have trimmed it. If it does not,
// every call on the realm ends in a CutError, until an operator accepts the loss. That is a row of table
// cuts, which makes void the marks that were made before it and are above it.
//
// Nobody can tell where a log was cut if other entries took the place of those that were lost. Then Last
// is the furthest entry that some mark still shows as it was, or 0.

// Mark implements [driver.Witness].
func (d *Driver) Mark(realm string) (driver.Mark, bool) {
	c := d.courses.of(realm)
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.marks.own
	if further(c.marks.told, m) {
		m = c.marks.told
	}
	return m, m.Cursor > 0
}

// Tell implements [driver.Witness]. The next call on the log compares it.
func (d *Driver) Tell(realm string, m driver.Mark) {
	if m.Cursor == 0 || driver.CheckRealm(realm) != nil {
		return
	}
	c := d.courses.of(realm)
	c.mu.Lock()
	defer c.mu.Unlock()
	if m != c.marks.own && further(m, c.marks.told) {
		c.marks.told = m
		c.change()
	}
}

// Cut implements [driver.Witness].
func (d *Driver) Cut(ctx context.Context, realm string) (*driver.CutError, error) {
	if err := driver.CheckRealm(realm); err != nil {
		return nil, err
	}
	course := d.courses.of(realm)
	err := d.do(ctx, d.life, "realm "+realm, func(ctx context.Context, c *conn) error {
		var id int32
		err := c.row(ctx, `SELECT id FROM $.realms WHERE name = $1::text AND NOT copying`, realm).Scan(&id)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return d.review(ctx, c, course, id)
	})
	if cut, ok := errors.AsType[*driver.CutError](err); ok {
		return cut, nil
	}
	return nil, err
}

// accepted is a cut that was accepted.
type accepted struct {
	line  uint64
	after driver.Cursor
}

// void reports whether an accepted cut has made a mark void.
func void(m driver.Mark, cuts []accepted) bool {
	for _, c := range cuts {
		if c.line > m.Line && m.Cursor > c.after {
			return true
		}
	}
	return false
}

// cuts returns a realm's accepted cuts, in their order.
func (d *database) cuts(ctx context.Context, c *conn, id int32) ([]accepted, error) {
	rows, err := c.query(ctx, `SELECT line, after FROM $.cuts WHERE realm = $1::int ORDER BY line`, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a accepted, err error) {
		var line, after int64
		err = row.Scan(&line, &after)
		return accepted{uint64(line), driver.Cursor(after)}, err
	})
}

// review compares all that is known of a log with what is there. id is 0 if the realm is not there.
func (d *database) review(ctx context.Context, c *conn, course *course, id int32) error {
	cuts, err := d.cuts(ctx, c, id)
	if err != nil {
		return err
	}
	course.mu.Lock()
	m := &course.marks
	line := uint64(len(cuts))
	if line != m.line || id != course.id {
		course.reset()
	}
	course.id, m.line, m.cut = id, line, nil
	if void(m.own, cuts) {
		m.own, m.prior = m.prior, driver.Mark{}
		if void(m.own, cuts) {
			m.own = driver.Mark{}
		}
	}
	if void(m.told, cuts) {
		m.told = driver.Mark{}
	}
	own, told := m.own, m.told
	course.mu.Unlock()
	for _, m := range []driver.Mark{told, own} {
		if m.Cursor == 0 {
			continue
		}
		if err := d.compare(ctx, c, course, id, m); err != nil {
			return err
		}
	}
	return nil
}

// compare compares a mark with the log. Its error is a CutError if they differ, which is remembered.
// A mark that another process has told becomes this one's, either way.
func (d *database) compare(ctx context.Context, c *conn, course *course, id int32, m driver.Mark) error {
	s, err := d.see(ctx, c, id, m.Cursor)
	if err != nil {
		return err
	}
	if !s.shows(m) {
		cut := &driver.CutError{Realm: course.realm, Last: s.last, Known: m}
		if s.last >= m.Cursor {
			if cut.Last, err = d.agreed(ctx, c, course, id); err != nil {
				return err
			}
		}
		course.mu.Lock()
		defer course.mu.Unlock()
		course.marks.cut = cut
		course.marks.adopt(m)
		course.change()
		return cut
	}
	course.mu.Lock()
	defer course.mu.Unlock()
	course.marks.adopt(m)
	return nil
}

// agreed returns the furthest entry that is as some mark has it, or 0.
func (d *database) agreed(ctx context.Context, c *conn, course *course, id int32) (last driver.Cursor, err error) {
	course.mu.Lock()
	known := []driver.Mark{course.marks.own, course.marks.prior, course.marks.told}
	course.mu.Unlock()
	for _, m := range known {
		if m.Cursor <= last {
			continue
		}
		s, err := d.see(ctx, c, id, m.Cursor)
		if err != nil {
			return 0, err
		}
		if s.there && s.hash == m.Hash {
			last = m.Cursor
		}
	}
	return last, nil
}

// sight is what can be seen of a log.
type sight struct {
	first, last driver.Cursor // 0 and 0 if it has no rows
	there       bool          // there is an entry at the cursor that was asked for,
	hash        [32]byte      // and this is its hash
}

// shows reports whether a log can be the one that a mark is from.
func (s sight) shows(m driver.Mark) bool {
	if s.there {
		return m.Hash == [32]byte{} || s.hash == m.Hash
	}
	return s.first > 0 && m.Cursor < s.first // trimmed
}

// see looks at the entry at a cursor.
func (d *database) see(ctx context.Context, c *conn, id int32, at driver.Cursor) (s sight, err error) {
	var first, last *int64
	var empty *bool
	var size, sum *int32
	var head []byte
	err = c.row(ctx, `SELECT f.cursor, f.data IS NULL, (SELECT max(cursor) FROM $.entries WHERE realm = $1::int),
			octet_length(m.data), m.sum, substring(m.data FROM 1 FOR `+fmt.Sprint(headSize)+`)
		FROM (SELECT 1) x
		LEFT JOIN (SELECT cursor, data FROM $.entries WHERE realm = $1::int ORDER BY cursor LIMIT 1) f ON true
		LEFT JOIN $.entries m ON m.realm = $1::int AND m.cursor = $2::bigint AND m.data IS NOT NULL`, id, int64(at)).
		Scan(&first, &empty, &last, &size, &sum, &head)
	if err != nil || first == nil {
		return s, err
	}
	s.first, s.last = driver.Cursor(*first), driver.Cursor(*last)
	if *empty {
		s.first++
	}
	if size != nil {
		s.there, s.hash = true, hashFrom(int(*size), *sum, head)
	}
	return s, nil
}

// heed returns the CutError of a log that is known to be cut. It first compares what others have told, on
// a connection of its own if c is nil.
func (l *log) heed(ctx context.Context, c *conn) error {
	l.course.mu.Lock()
	cut, told := l.course.marks.cut, l.course.marks.told
	l.course.mu.Unlock()
	if cut != nil {
		return cut
	}
	if told.Cursor == 0 || l.apart {
		return nil
	}
	if c != nil {
		return l.recall(ctx, c)
	}
	return l.once(ctx, l.recall)
}

// recall compares all that is known with the log.
func (l *log) recall(ctx context.Context, c *conn) error {
	if l.apart {
		return nil
	}
	return l.review(ctx, c, l.course, l.id)
}

// cutAt is the error of a log whose entry at a cursor is not there any more, or is another one.
func (l *log) cutAt(ctx context.Context, c *conn, at driver.Cursor) error {
	if err := l.recall(ctx, c); err != nil {
		return err
	}
	s, err := l.see(ctx, c, l.id, at)
	if err != nil {
		return err
	}
	cut := &driver.CutError{Realm: l.name, Last: min(s.last, at), Known: driver.Mark{Cursor: at}}
	l.course.mu.Lock()
	defer l.course.mu.Unlock()
	cut.Known.Line = l.course.marks.line
	if s.last >= at { // another entry stands there
		cut.Last = 0
	}
	l.course.marks.cut = cut
	l.course.change()
	return cut
}

// AcceptCut implements [driver.Witness].
func (d *Driver) AcceptCut(ctx context.Context, realm string, cut *driver.CutError) error {
	if err := driver.CheckRealm(realm); err != nil {
		return err
	}
	course := d.courses.of(realm)
	return d.do(ctx, d.life, "accept what realm "+realm+" has lost", func(ctx context.Context, c *conn) error {
		var next driver.Mark
		var id int32
		err := pgx.BeginFunc(ctx, c.Conn, func(tx pgx.Tx) (err error) {
			if id, err = d.ensure(ctx, c, realm); err != nil {
				return err
			}
			next, err = d.accept(ctx, c, course, id, cut)
			return err
		})
		if err == nil {
			err = c.warned()
		}
		if err != nil {
			return err
		}
		course.mu.Lock()
		defer course.mu.Unlock()
		course.reset()
		m := &course.marks
		m.cut, m.line = nil, next.Line
		if m.told.Line < next.Line && m.told.Cursor > cut.Last {
			m.told = driver.Mark{}
		}
		if further(next, m.own) {
			m.move(next)
		}
		m.prior = driver.Mark{}
		return nil
	})
}

// accept writes down a cut, in a transaction. It returns the mark to go on with.
func (d *database) accept(ctx context.Context, c *conn, course *course, id int32, cut *driver.CutError) (next driver.Mark, err error) {
	if _, err := c.exec(ctx, `SELECT 1 FROM $.realms WHERE id = $1::int FOR UPDATE`, id); err != nil {
		return next, err
	}
	cuts, err := d.cuts(ctx, c, id)
	if err != nil {
		return next, err
	}
	next = driver.Mark{Line: uint64(len(cuts)) + 1, Cursor: cut.Last}
	there, err := d.see(ctx, c, id, cut.Last)
	if err != nil {
		return next, err
	}
	next.Hash = there.hash
	if !there.there {
		next.Cursor = 0
	}
	if void(cut.Known, cuts) { // by an earlier attempt, or another process
		next.Line--
		return next, nil
	}
	now, err := d.see(ctx, c, id, cut.Known.Cursor)
	if err != nil {
		return next, err
	}
	if now.shows(cut.Known) {
		return next, fmt.Errorf("%w: the entry at %d is there", errOtherCut, cut.Known.Cursor)
	}
	if now.last < cut.Known.Cursor && now.last != cut.Last || now.last < cut.Last {
		return next, fmt.Errorf("%w: the log ends at %d, and at %d before", errOtherCut, now.last, cut.Last)
	}
	_, err = c.exec(ctx, `INSERT INTO $.cuts (realm, line, after, known, hash)
		VALUES ($1::int, $2::bigint, $3::bigint, $4::bigint, $5::bytea)`,
		id, int64(next.Line), int64(cut.Last), int64(cut.Known.Cursor), cut.Known.Hash[:])
	return next, err
}

// errOtherCut is in the error of a cut that is not as it was when somebody looked.
var errOtherCut = errors.New("the log is another one than it was: look again")
