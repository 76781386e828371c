package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuji-dev/kuji/driver"
)

// How a reader asks for entries. It holds no connection while somebody takes what it has read.
const (
	batchRows  = 2000
	batchBytes = 4 << 20                // and one entry more
	soon       = 200 * time.Millisecond // how often logs that are followed are looked at,
	later      = time.Second            // and if nothing has happened for some time,
	quiet      = 50                     // which is so many looks
)

// follower reads a log in order.
type follower struct {
	*log
	after   driver.Cursor // the entry that was yielded last
	sum     *int32        // its checksum, if it was read or appended here
	through driver.Cursor // the last entry to read; 0: there is none
	rows    int           // how many to ask for at once
	damage  error         // what comes after the entries that were read; nil: more entries
}

// entry is a row of the log.
type entry struct {
	cursor  int64
	sum     int32
	empty   bool // no entry: the place before the first one
	data    []byte
	standby bool // the database is told to wait for a standby
}

func (l *log) Read(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		if through != 0 && after >= through {
			return
		}
		f := &follower{log: l, after: after, sum: l.course.sumAt(after), through: through, rows: batchRows}
		outer := ctx
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(l.life, cancel)()
		leave := l.follow(l.id, l.course)
		defer leave()
		for through == 0 || f.after < through {
			changed := l.course.next()
			entries, err := f.next(ctx)
			if len(entries) == 0 && err == nil {
				select {
				case <-changed:
				case <-ctx.Done():
				}
			}
			for i := range entries {
				if cmp.Or(l.open(), outer.Err()) != nil {
					break
				}
				f.after, f.sum = driver.Cursor(entries[i].cursor), &entries[i].sum
				if !yield(driver.Entry{Cursor: f.after, Data: entries[i].data}, nil) {
					return
				}
			}
			if err = cmp.Or(l.open(), outer.Err(), err); err != nil {
				yield(driver.Entry{}, err)
				return
			}
		}
	}
}

// next returns entries that survive, none if there are none yet, and the error that comes after them.
func (f *follower) next(ctx context.Context) ([]entry, error) {
	if f.damage != nil {
		return nil, f.damage
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var entries []entry
	err := f.try(ctx, f.life, func(ctx context.Context, c *conn) error {
		err := f.heed(ctx, c)
		if err == nil {
			entries, err = f.batch(ctx, c)
		}
		return err
	})
	if err != nil || len(entries) == 0 {
		return nil, cmp.Or(err, f.damage)
	}
	if entries[0].standby {
		if entries, err = f.settled(ctx, entries); err != nil || len(entries) == 0 {
			return nil, err
		}
	}
	last := entries[len(entries)-1]
	f.course.passed(driver.Cursor(last.cursor), last.data)
	return entries, f.damage
}

// batch reads entries. It checks that the one before them is the one that was yielded last, so that a
// log whose end was replaced is noticed.
func (f *follower) batch(ctx context.Context, c *conn) ([]entry, error) {
	for range 3 {
		m := f.course.mark() // what it says was there before this look
		rows, err := f.read(ctx, c)
		if code := codeOf(err); (code == codeDamaged || code == codeIndexDamaged) && f.rows > 1 {
			f.rows = 1 // to find the place
			return nil, errors.New("one of several entries is damaged")
		} else if err != nil {
			if isA[*driver.CorruptError](known(err)) {
				return nil, f.corrupt(f.after+1, err)
			}
			return nil, err
		}
		if len(rows) > 0 && driver.Cursor(rows[0].cursor) == f.after {
			if f.sum != nil && *f.sum != rows[0].sum {
				return nil, f.cutAt(ctx, c, f.after)
			}
			if len(rows) > 1 {
				return f.right(ctx, c, f.checked(rows[1:]), m)
			}
		}
		if len(rows) > 0 && driver.Cursor(rows[0].cursor) == f.after+1 && !rows[0].empty {
			return f.right(ctx, c, f.checked(rows), m)
		}
		first, last, err := f.bounds(ctx, c)
		switch {
		case err != nil:
			return nil, err
		case last < f.after:
			return nil, f.cutAt(ctx, c, f.after)
		case first > f.after+1:
			return nil, &driver.TrimmedError{First: first}
		case last == f.after:
			return f.right(ctx, c, nil, m)
		}
	}
	return nil, f.corrupt(f.after+1, errors.New("it is not there, and entries before and after it are"))
}

// read asks for the entry before, without its data, and those that follow. It bounds their cursors and not
// their number, which without gaps is the same: whatever plan the database makes, it looks at no others.
func (f *follower) read(ctx context.Context, c *conn) ([]entry, error) {
	through := f.after + driver.Cursor(f.rows)
	if f.through != 0 {
		through = min(through, f.through)
	}
	rows, err := c.query(ctx, `SELECT cursor, sum, data IS NULL, CASE WHEN cursor > $2::bigint THEN data END, current_setting('synchronous_standby_names') <> ''
		FROM (SELECT cursor, sum, data, sum(coalesce(octet_length(data), 0)) OVER (ORDER BY cursor) - coalesce(octet_length(data), 0) AS before
			FROM (SELECT cursor, sum, data FROM $.entries WHERE realm = $1::int AND cursor >= $2::bigint AND cursor <= $3::bigint) few) summed
		WHERE before <= $4::bigint ORDER BY cursor`, f.id, int64(f.after), int64(through), int64(batchBytes))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e entry, err error) {
		err = row.Scan(&e.cursor, &e.sum, &e.empty, &e.data, &e.standby)
		return e, err
	})
}

// right returns entries, unless the log falls short of a mark that was made before they were read: what
// stands in its place is another entry, or nothing, and then these need not be as they were either.
func (f *follower) right(ctx context.Context, c *conn, rows []entry, m driver.Mark) ([]entry, error) {
	i := int64(m.Cursor) - int64(f.after) - 1
	switch {
	case i >= int64(len(rows)):
		if err := f.recall(ctx, c); err != nil {
			return nil, err
		}
	case i >= 0 && hashOf(rows[i].data) != m.Hash:
		return nil, f.cutAt(ctx, c, m.Cursor)
	}
	return rows, nil
}

// checked returns the rows before the first damaged one, which it notes.
func (f *follower) checked(rows []entry) []entry {
	for i, e := range rows {
		at := f.after + 1 + driver.Cursor(i)
		switch {
		case driver.Cursor(e.cursor) != at:
			f.damage = f.corrupt(at, fmt.Errorf("it is not there, and the one at %d is", e.cursor))
		case e.empty:
			f.damage = f.corrupt(at, errors.New("it has no data"))
		case e.sum != sumOf(e.data):
			f.damage = f.corrupt(at, fmt.Errorf("CRC32C %08x, want %08x", uint32(sumOf(e.data)), uint32(e.sum)))
		default:
			continue
		}
		return rows[:i]
	}
	return rows
}

// corrupt is the error of a damaged entry.
func (f *follower) corrupt(at driver.Cursor, err error) error {
	return &driver.CorruptError{Place: fmt.Sprintf("realm %s: entry %d in %s.entries", f.name, at, f.config.schema), At: at, Err: err}
}

// settled returns those of some entries that survive, since they were acknowledged, or since a fence has
// been made after they were seen.
func (f *follower) settled(ctx context.Context, entries []entry) ([]entry, error) {
	last := entries[len(entries)-1]
	ctx, cancel := context.WithTimeout(ctx, f.o.Patience)
	defer cancel()
	for {
		if n := int64(f.course.durableTo()) - entries[0].cursor + 1; n > 0 {
			if n < int64(len(entries)) {
				entries, f.damage = entries[:n], nil
			}
			return entries, nil
		}
		if err := f.course.fences.enter(ctx); err != nil {
			return nil, fmt.Errorf("%w: entry %d waits for the standby: %w", driver.ErrUnavailable, last.cursor, err)
		}
		if int64(f.course.durableTo()) >= entries[0].cursor { // by the one before
			f.course.fences.leave()
			continue
		}
		err := f.fly(f.course.fences, func(ctx context.Context, c *conn) (driver.Cursor, error) {
			return driver.Cursor(last.cursor), f.fence(ctx, c, driver.Cursor(last.cursor), last.sum)
		}, func(*flight) {}).wait(ctx)
		if errors.Is(err, errGone) { // read again: what stands there now need not end elsewhere
			f.course.look()
			return nil, nil
		}
		if err != nil {
			pause(ctx, soon)
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
			}
		}
	}
}

// poller looks at the logs that are followed, all at once: others append to them.
type poller struct {
	mu       sync.Mutex
	running  bool
	followed map[int32]*followed
}

// followed is a log that readers follow.
type followed struct {
	courses map[*course]int // the number of readers of each
	last    int64
}

// follow makes the poller look at a log until leave is called.
func (d *Driver) follow(id int32, c *course) (leave func()) {
	p := &d.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.followed[id] == nil {
		p.followed[id] = &followed{courses: map[*course]int{}, last: -1}
	}
	p.followed[id].courses[c]++
	if !p.running {
		p.running = d.run(d.poll)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		f := p.followed[id]
		if f.courses[c]--; f.courses[c] == 0 {
			delete(f.courses, c)
		}
		if len(f.courses) == 0 {
			delete(p.followed, id)
		}
	}
}

// poll runs as long as there are readers.
func (d *Driver) poll() {
	for still, wait := 0, soon; ; {
		pause(d.life, wait)
		ids := d.poller.ids()
		if len(ids) == 0 {
			return
		}
		ends := map[int32]int64{}
		err := d.once(d.life, func(ctx context.Context, c *conn) error {
			rows, err := c.query(ctx, `SELECT r, coalesce((SELECT max(cursor) FROM $.entries WHERE realm = r), -1) FROM unnest($1::int[]) r`, ids)
			if err != nil {
				return err
			}
			var id int32
			var last int64
			_, err = pgx.ForEachRow(rows, []any{&id, &last}, func() error { ends[id] = last; return nil })
			return err
		})
		if still++; d.poller.moved(ends) {
			still = 0
		}
		wait = soon
		if err != nil || still > quiet {
			wait = later
		}
	}
}

// ids returns the logs to look at. If there are none, the poller ends.
func (p *poller) ids() (ids []int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.followed {
		ids = append(ids, id)
	}
	p.running = len(ids) > 0
	return ids
}

// moved wakes the readers of logs that end elsewhere than before.
func (p *poller) moved(ends map[int32]int64) (any bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, last := range ends {
		if f := p.followed[id]; f != nil && f.last != last {
			f.last, any = last, true
			for c := range f.courses {
				c.look()
			}
		}
	}
	return any
}
