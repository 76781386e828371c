package history

import (
	"context"
	"fmt"
	"strings"

	"github.com/kuji-dev/kuji"
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
// whose rows stand in the order of its key. docs/history.md explains them.
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

// dialect is the words in which a database takes the schema.
type dialect struct{ integer, name, clustered string }

// statements returns some of the schema in the words of a database.
func (d dialect) statements(sql string) []string {
	sql = strings.NewReplacer(" INT", " "+d.integer, " NAME", " "+d.name, " CLUSTERED", d.clustered).Replace(sql)
	return strings.Split(strings.TrimSpace(sql), ";\n")
}

// create makes the tables, if they are not there, and brings older ones to this version.
func (h *DB) create(ctx context.Context, c conn) error {
	exec := func(statements ...string) error {
		for _, sql := range statements {
			if _, err := c.exec(ctx, sql); err != nil {
				return failed("creating", err)
			}
		}
		return nil
	}
	if err := exec(append(h.db.begin(), h.db.words().statements(progressTable)...)...); err != nil {
		return err
	}
	f, err := h.formatOf(ctx, c)
	for ; err == nil && f != 0 && f < format; f++ {
		if err = h.upgrade(ctx, c, f); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if err := exec(h.db.words().statements(schema)...); err != nil || f != 0 {
		return err
	}
	return h.insertProgress(ctx, c, progress{last: true, completeFrom: 1}, " ON CONFLICT DO NOTHING")
}

// formatOf returns the version of the schema; 0: there is nothing yet. It refuses one that this build
// can neither read nor upgrade.
func (h *DB) formatOf(ctx context.Context, c conn) (f int64, err error) {
	err = failed("reading", c.query(ctx, "SELECT format FROM progress WHERE id = 1", func(r row) error {
		f = r.int(0)
		return nil
	}))
	conflict := ""
	if _, known := upgrades[f]; f > format {
		conflict = "newer than this build, which knows format %d: use the build that wrote it, or delete the history, and it is built again"
	} else if err == nil && f != 0 && f != format && !known {
		conflict = "too old for this build, which upgrades format 2 and keeps format %d: delete the history, and it is built again"
	}
	if conflict != "" {
		return f, &kuji.Error{Code: kuji.CodeConflict, Message: fmt.Sprintf("a history of format %d: "+conflict, f, format)}
	}
	return f, err
}

// upgrade brings the schema from a version to the next one, unless somebody else has done so.
func (h *DB) upgrade(ctx context.Context, c conn, from int64) error {
	if _, err := c.exec(ctx, "BEGIN"); err != nil {
		return failed("upgrading", err)
	}
	n, err := c.exec(ctx, "UPDATE progress SET format = $1 WHERE id = 1 AND format = $2", from+1, from) // locks out others
	if err == nil && n == 1 {
		for _, sql := range h.db.words().statements(upgrades[from]) {
			if _, err = c.exec(ctx, sql); err != nil {
				break
			}
		}
	}
	if err != nil { // the connection, and with it the transaction, is closed
		return failed("upgrading", err)
	}
	_, err = c.exec(ctx, "COMMIT")
	return failed("upgrading", err)
}

// insertProgress inserts the row that says how far the history has come.
func (h *DB) insertProgress(ctx context.Context, c conn, p progress, tail string) error {
	_, err := h.exec(ctx, c, `INSERT INTO progress (id, format, realm, position, event, last, complete_from, kept_from, kept_time, proven_from, rebuild, sum)
		VALUES (1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`+tail, int64(format), h.realm, int64(p.at.Position), int64(p.at.Index), flag(p.last),
		int64(p.completeFrom), int64(p.keptFrom), p.keptTime, int64(p.provenFrom), flag(p.rebuild), p.sum(h.realm))
	return failed("creating", err)
}
