package history

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/kuji-dev/kuji"
	levels "github.com/kuji-dev/kuji/internal/format"
)

// format is the version of the schema. An older one is turned into this one when a history is opened,
// see upgrades; a newer one is refused.
const format = 3

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
}

// dialect is the words that databases have of their own.
type dialect struct {
	integer, name, clustered string   // in the schema
	first                    []string // statements before the tables are made
	read                     string   // begins a transaction that only reads, and sees one snapshot
}

// statements returns some of the schema in the words of a database.
func (d dialect) statements(sql string) []string {
	sql = strings.NewReplacer(" INT", " "+d.integer, " NAME", " "+d.name, " CLUSTERED", d.clustered).Replace(sql)
	return strings.Split(strings.TrimSpace(sql), ";\n")
}

// tables is the tables of a history, through a connection that writes.
type tables struct {
	db    database
	c     conn
	realm string
	exec  func(ctx context.Context, sql string, args ...any) (int64, error)
}

func (h *DB) tables(c conn) tables {
	return tables{h.db, c, h.realm, func(ctx context.Context, sql string, args ...any) (int64, error) { return h.exec(ctx, c, sql, args...) }}
}

// create makes the tables, if they are not there, and brings older ones to this version.
func (t tables) create(ctx context.Context) error {
	words := t.db.words()
	if err := t.run(ctx, append(words.first, words.statements(progressTable)...)...); err != nil {
		return failed("creating", err)
	}
	f, err := t.formatOf(ctx)
	for ; err == nil && f != 0 && f < format; f++ {
		if err = t.upgrade(ctx, f); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if err := t.run(ctx, words.statements(schema)...); err != nil || f != 0 {
		return failed("creating", err)
	}
	return t.insertProgress(ctx, progress{last: true, completeFrom: 1}, " ON CONFLICT DO NOTHING")
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

// formatOf returns the version of the schema; 0: there is nothing yet. It refuses one that this build
// can neither read nor upgrade.
func (t tables) formatOf(ctx context.Context) (f int64, err error) {
	err = failed("reading", t.c.query(ctx, "SELECT format FROM progress WHERE id = 1", func(r row) error {
		f = r.int(0)
		return nil
	}))
	if newer := levels.Newer("history", uint64(f), format); newer != nil {
		return f, &kuji.Error{Code: kuji.CodeFormat, Message: "use the build that wrote it, or delete the history, and it is built again", Err: newer}
	}
	if _, known := upgrades[f]; err == nil && f != 0 && f != format && !known {
		return f, &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("a history of format %d: too old for this build, which upgrades format 2 and keeps format %d: delete the history, and it is built again", f, format)}
	}
	return f, err
}

// upgrade brings the schema from a version to the next one, unless somebody else has done so.
func (t tables) upgrade(ctx context.Context, from int64) error {
	if err := t.run(ctx, "BEGIN"); err != nil {
		return failed("upgrading", err)
	}
	n, err := t.exec(ctx, "UPDATE progress SET format = $1 WHERE id = 1 AND format = $2", from+1, from) // locks out others
	if err == nil && n == 1 {
		err = t.run(ctx, t.db.words().statements(upgrades[from])...)
	}
	if err == nil { // otherwise the connection is closed, and with it the transaction
		err = t.run(ctx, "COMMIT")
	}
	return failed("upgrading", err)
}

// insertProgress inserts the row that says how far the history goes.
func (t tables) insertProgress(ctx context.Context, p progress, tail string) error {
	_, err := t.exec(ctx, `INSERT INTO progress (id, format, realm, position, event, last, complete_from, kept_from, kept_time, proven_from, rebuild, sum)
		VALUES (1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`+tail, append([]any{int64(format)}, p.row(t.realm)...)...)
	return failed("creating", err)
}

// progress reads how far the history goes.
func (t tables) progress(ctx context.Context) (p progress, err error) {
	if f, err := t.formatOf(ctx); err != nil || f != format {
		return p, cmp.Or(err, damaged("the table progress is empty"))
	}
	found, realm := false, ""
	err = failed("reading", t.c.query(ctx, `SELECT realm, position, event, last, complete_from, kept_from, kept_time, proven_from, rebuild, sum FROM progress WHERE id = 1`, func(r row) error {
		found, realm = true, r.text(0)
		p = progress{Place{uint64(r.int(1)), int(r.int(2))}, r.int(3) != 0, uint64(r.int(4)), uint64(r.int(5)), r.int(6), uint64(r.int(7)), r.int(8) != 0}
		if r.int(9) != p.sum(realm) && !(r.null(9) && p.rebuild) { // without one it was upgraded
			return damaged("the table progress: its checksum differs")
		}
		return nil
	}))
	switch {
	case err == nil && !found:
		err = damaged("the table progress is empty")
	case err == nil && realm != t.realm:
		err = &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("the history of realm %q, want %q", realm, t.realm)}
	}
	return p, err
}
