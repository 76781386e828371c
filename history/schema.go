package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji"
	levels "github.com/kuji-dev/kuji/internal/format"
)

// format is the schema's version. Opening upgrades an older one, see upgrades, and refuses a newer one.
const format = 6

// progressTable comes first: it says which version the others have.
const progressTable = `
CREATE TABLE IF NOT EXISTS progress (id INT PRIMARY KEY, format INT NOT NULL, realm TEXT NOT NULL,
	position INT NOT NULL, event INT NOT NULL, last INT NOT NULL, complete_from INT NOT NULL, kept_from INT NOT NULL, kept_time INT NOT NULL,
	proven_from INT NOT NULL DEFAULT 0, rebuild INT NOT NULL DEFAULT 0, sum INT)`

// schema is the other tables, for both databases: INT and NAME are types, CLUSTERED is said of a table
// whose rows stand in the order of its key. docs/reference/history.md explains them.
const schema = `
CREATE TABLE IF NOT EXISTS players (id INT PRIMARY KEY, name NAME NOT NULL UNIQUE, sum INT);
CREATE TABLE IF NOT EXISTS items (id INT PRIMARY KEY, name NAME NOT NULL UNIQUE, sum INT);
CREATE TABLE IF NOT EXISTS pools (id INT PRIMARY KEY, name NAME NOT NULL UNIQUE, sum INT);
CREATE TABLE IF NOT EXISTS events (seq INT PRIMARY KEY, time INT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL,
	player INT, pool INT, request TEXT, detail TEXT NOT NULL, sum INT);
CREATE TABLE IF NOT EXISTS pool_events (pool INT NOT NULL, seq INT NOT NULL, PRIMARY KEY (pool, seq)) CLUSTERED;
CREATE TABLE IF NOT EXISTS item_events (item INT NOT NULL, seq INT NOT NULL, PRIMARY KEY (item, seq)) CLUSTERED;
CREATE TABLE IF NOT EXISTS changes (player INT NOT NULL, seq INT NOT NULL, item INT NOT NULL, delta INT NOT NULL, balance INT,
	PRIMARY KEY (player, seq, item)) CLUSTERED;
CREATE TABLE IF NOT EXISTS holdings (item INT NOT NULL, player INT NOT NULL, quantity INT NOT NULL, sum INT,
	PRIMARY KEY (item, player)) CLUSTERED`

// upgrades turn a version of the schema into the next one, each in a transaction of its own.
var upgrades = map[int64]string{
	// Rows get checksums. Those that are there have none: they are not proven, and the next Run builds
	// the history again, as far back as the log goes.
	2: `
ALTER TABLE players ADD COLUMN sum INT;
ALTER TABLE items ADD COLUMN sum INT;
ALTER TABLE pools ADD COLUMN sum INT;
ALTER TABLE events ADD COLUMN sum INT;
ALTER TABLE holdings ADD COLUMN sum INT;
ALTER TABLE progress ADD COLUMN proven_from INT NOT NULL DEFAULT 0;
ALTER TABLE progress ADD COLUMN rebuild INT NOT NULL DEFAULT 1;
ALTER TABLE progress ADD COLUMN sum INT`,
	3: views, // of details that are there
	4: roundViews,
	5: holdViews,
}

// dialect is the words that databases have of their own.
type dialect struct {
	integer, name, clustered string   // in the schema
	view, each, doc          string   // makes or replaces a view; the elements of list $2 in the JSON of $1; the JSON of $1
	first                    []string // statements before the tables are made
	read                     string   // begins a transaction that only reads, and sees one snapshot
}

// statements returns some of the schema in the words of a database.
func (d dialect) statements(sql string) []string {
	sql = docWord.ReplaceAllString(eachWord.ReplaceAllString(sql, d.each), d.doc)
	sql = strings.NewReplacer("VIEW ", d.view+" ", " INT", " "+d.integer, " NAME", " "+d.name, " CLUSTERED", d.clustered).Replace(sql)
	return strings.Split(strings.TrimSpace(sql), ";\n")
}

// tables is the tables of a history, through a connection.
type tables struct {
	h *DB
	conn
}

// writing calls f with the tables, through a connection that may write.
func (h *DB) writing(ctx context.Context, f func(t tables) error) error {
	c, err := h.db.open(ctx, true)
	if err != nil {
		return failed("opening", err)
	}
	return failed("writing", errors.Join(f(tables{h, c}), c.close()))
}

// exec carries out a statement that writes.
func (t tables) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	if t.h.failpoint != nil {
		if err := t.h.failpoint(sql); err != nil {
			return 0, err
		}
	}
	return t.conn.exec(ctx, sql, args...)
}

// run carries out statements.
func (t tables) run(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if _, err := t.exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// one returns the row of a statement that returns at most one; nil: none.
func (t tables) one(ctx context.Context, sql string, args ...any) (found row, err error) {
	err = t.query(ctx, sql, func(r row) error {
		found = slices.Clone(r)
		return nil
	}, args...)
	return found, err
}

// create makes the tables, if they are not there, and brings older ones to this version.
func (t tables) create(ctx context.Context) error {
	words := t.h.db.words()
	if err := t.run(ctx, append(words.first, words.statements(progressTable)...)...); err != nil {
		return failed("creating", err)
	}
	f, err := t.formatOf(ctx)
	for ; err == nil && f != 0 && f < format; f++ {
		err = failed("upgrading", t.upgrade(ctx, f))
	}
	if err != nil {
		return err
	}
	if err = t.run(ctx, words.statements(schema)...); err == nil && f == 0 {
		if err = t.run(ctx, words.statements(allViews)...); err == nil {
			err = t.insertProgress(ctx, nothing)
		}
	}
	return failed("creating", err)
}

// formatOf returns the schema's version; 0: there is nothing yet. It refuses what this build cannot upgrade.
func (t tables) formatOf(ctx context.Context) (f int64, err error) {
	row, err := t.one(ctx, "SELECT format FROM progress WHERE id = 1")
	if err != nil || row == nil {
		return 0, failed("reading", err)
	}
	f = row.int(0)
	if newer := levels.Newer("history", uint64(f), format); newer != nil {
		return f, &kuji.Error{Code: kuji.CodeFormat, Message: "use the build that wrote it, or delete the history, and it is built again", Err: newer}
	}
	if _, known := upgrades[f]; f != 0 && f != format && !known {
		return f, &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("a history of format %d: too old for this build, which upgrades formats from 2 on and keeps format %d: delete the history, and it is built again", f, format)}
	}
	return f, nil
}

// upgrade brings the schema to the next version, unless somebody else has. Its error closes the connection.
func (t tables) upgrade(ctx context.Context, from int64) error {
	if err := t.run(ctx, "BEGIN"); err != nil {
		return err
	}
	n, err := t.exec(ctx, "UPDATE progress SET format = $1 WHERE id = 1 AND format = $2", from+1, from) // locks out others
	if err == nil && n == 1 {
		err = t.run(ctx, t.h.db.words().statements(upgrades[from])...)
	}
	if err != nil {
		return err
	}
	return t.run(ctx, "COMMIT")
}

// progressColumns are the columns of a progress, see its row.
const progressColumns = "realm, position, event, last, complete_from, kept_from, kept_time, proven_from, rebuild, sum"

// insertProgress inserts the row that says how far the history goes, unless it is there.
func (t tables) insertProgress(ctx context.Context, p progress) error {
	_, err := t.exec(ctx, "INSERT INTO progress (id, format, "+progressColumns+") VALUES (1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING",
		append([]any{int64(format)}, p.row(t.h.realm)...)...)
	return err
}

// update changes the row from p to next, and locks out other writers. It fails if the row is not p's.
func (t tables) update(ctx context.Context, p, next progress) error {
	was := p.row(t.h.realm)
	n, err := t.exec(ctx, "UPDATE progress SET ("+progressColumns+") = ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) WHERE id = 1 AND position = $11 AND event = $12 AND sum = $13",
		append(next.row(t.h.realm), was[1], was[2], was[9])...)
	if err == nil && n != 1 {
		err = &kuji.Error{Code: kuji.CodeFailed, Message: "somebody else writes this history"}
	}
	return err
}

// progress reads how far the history goes.
func (t tables) progress(ctx context.Context) (p progress, err error) {
	if f, err := t.formatOf(ctx); err != nil || f != format {
		return p, cmp.Or(err, damaged("the table progress is empty"))
	}
	r, err := t.one(ctx, "SELECT "+progressColumns+" FROM progress WHERE id = 1")
	if err != nil || r == nil {
		return p, cmp.Or(failed("reading", err), damaged("the table progress is empty"))
	}
	kept := State{0, uint64(r.int(4)), uint64(r.int(5)), r.int(6), uint64(r.int(7))}
	p = progress{kept, Place{uint64(r.int(1)), int(r.int(2))}, r.int(3) != 0, r.int(8) != 0}
	want := p.row(r.text(0))
	switch {
	case r[9] != want[9] && !(r[9] == nil && p.rebuild): // without one it was upgraded
		err = damaged("the table progress: its checksum differs")
	case r.text(0) != t.h.realm:
		err = &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("the history of realm %q, want %q", r.text(0), t.h.realm)}
	}
	return p, err
}

// lookAtOnce is how many keys a lookup has in a statement, and fewAtOnce if there are no more.
const lookAtOnce, fewAtOnce = 256, 16

// What stands for an argument. PostgreSQL takes what is in VALUES for text, unless told.
const (
	argument = "$%d"
	number   = "CAST($%d AS BIGINT)"
	text     = "CAST($%d AS TEXT)"
)

// lookup is query with a list of keys, written $$. NULLs fill the list up: there are few statements.
func (t tables) lookup(ctx context.Context, sql string, key []string, keys []any, each func(r row) error) error {
	for some := range slices.Chunk(keys, len(key)*lookAtOnce) {
		n := lookAtOnce
		if len(some) <= len(key)*fewAtOnce {
			n = fewAtOnce
		}
		args := make([]any, n*len(key))
		copy(args, some)
		if err := t.query(ctx, strings.Replace(sql, "$$", tuples(n, key), 1), each, args...); err != nil {
			return err
		}
	}
	return nil
}

// tuples returns ($1, …), … with n tuples of such arguments.
func tuples(n int, key []string) string {
	var b strings.Builder
	for i := range n * len(key) {
		between := ","
		if i%len(key) == 0 {
			between = "),("
		}
		fmt.Fprintf(&b, between+key[i%len(key)], i+1)
	}
	return b.String()[2:] + ")"
}
