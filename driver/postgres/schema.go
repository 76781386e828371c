package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// migrations make the schema. A schema of version n has had the first n. None is ever changed.
//
// Data is stored as it is: most of it is small or compressed already. Rows of logs and files go by
// ranges, so vacuum is told to come by their number and not by their share of a table that may be large.
var migrations = [][]string{
	{
		`CREATE TABLE $.meta (one bool PRIMARY KEY DEFAULT true CHECK (one), cluster text NOT NULL, version int NOT NULL)`,
		`CREATE TABLE $.realms (id int GENERATED ALWAYS AS IDENTITY UNIQUE, name text PRIMARY KEY, copying bool NOT NULL)`,

		// A log begins with a row without data, at the cursor before its first entry. sum is the CRC32C of data.
		`CREATE TABLE $.entries (realm int, cursor bigint, sum int NOT NULL, data bytea, PRIMARY KEY (realm, cursor)) WITH (
			toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
			toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 20000)`,
		`ALTER TABLE $.entries ALTER data SET STORAGE EXTERNAL`,

		`CREATE TABLE $.board (one bool PRIMARY KEY DEFAULT true CHECK (one), version bigint NOT NULL, data bytea NOT NULL) WITH (
			fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
			toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 1000)`,
		`ALTER TABLE $.board ALTER data SET STORAGE EXTERNAL`,
		`INSERT INTO $.board (version, data) VALUES (0, '')`,

		// A fence updates one of several rows, so that two seldom wait for each other.
		`CREATE TABLE $.fences (slot int PRIMARY KEY, n bigint NOT NULL) WITH (
			fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`,
		`INSERT INTO $.fences SELECT slot, 0 FROM generate_series(0, 31) slot`,
	},
	{
		// A file without a name is not committed, or removed.
		`CREATE TABLE $.files (id bigint PRIMARY KEY, realm int NOT NULL, name text, size bigint, chunk int NOT NULL,
			begun timestamptz NOT NULL, UNIQUE (realm, name))`,
		`CREATE TABLE $.chunks (file bigint, n int, sum int NOT NULL, data bytea NOT NULL, PRIMARY KEY (file, n)) WITH (
			autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
			toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 50000)`,
		`ALTER TABLE $.chunks ALTER data SET STORAGE EXTERNAL`,
	},
	{
		// An accepted cut: the log was as it had been up to after, and the entry at known was lost.
		`CREATE TABLE $.cuts (realm int, line bigint, after bigint NOT NULL, known bigint NOT NULL, hash bytea NOT NULL,
			at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (realm, line))`,
	},
}

// turns is the number of an advisory lock: who holds it, with the schema's name as a second number, changes
// the schema.
const turns = 1801677417

// migrate makes the schema, or brings it up to date. If it is, only that is looked at.
func (d *database) migrate(ctx context.Context, c *conn) error {
	version, err := d.version(ctx, c)
	for ; err == nil && version < len(migrations); version++ {
		err = d.step(ctx, c)
	}
	return err
}

// version returns the schema's version, or 0 if there is none.
func (d *database) version(ctx context.Context, c *conn) (version int, err error) {
	var cluster string
	err = c.row(ctx, `SELECT version, cluster FROM $.meta`).Scan(&version, &cluster)
	switch code := codeOf(err); {
	case code == codeNoTable || code == codeNoSchema:
		return 0, nil
	case errors.Is(err, pgx.ErrNoRows):
		return 0, fmt.Errorf("schema %q: its table meta is empty: something else made it", d.config.schema)
	case err != nil:
		return 0, err
	case cluster != d.o.Cluster:
		return 0, &ClusterError{Schema: d.config.schema, Has: cluster, Wants: d.o.Cluster}
	case version > len(migrations):
		return 0, &VersionError{Schema: d.config.schema, Has: version, Knows: len(migrations)}
	}
	return version, nil
}

// step makes the next migration, unless another process is faster.
func (d *database) step(ctx context.Context, c *conn) error {
	return pgx.BeginFunc(ctx, c.Conn, func(tx pgx.Tx) error {
		if _, err := c.exec(ctx, `SELECT pg_advisory_xact_lock($1::int, hashtext($2::text))`, int32(turns), d.config.schema); err != nil {
			return err
		}
		// A statement that fails ends the transaction. So nothing is read that may not be there.
		var schema, meta bool
		err := c.row(ctx, `SELECT to_regnamespace($1::text) IS NOT NULL, to_regclass($1::text || '.meta') IS NOT NULL`, d.config.schema).Scan(&schema, &meta)
		if err != nil {
			return err
		}
		version := 0
		if meta {
			if version, err = d.version(ctx, c); err != nil {
				return err
			}
		}
		if version == len(migrations) {
			return nil
		}
		statements := migrations[version]
		if !schema {
			statements = append([]string{`CREATE SCHEMA ` + pgx.Identifier{d.config.schema}.Sanitize()}, statements...)
		}
		for _, sql := range statements {
			if _, err := c.exec(ctx, sql); err != nil {
				return fmt.Errorf("making schema %q, version %d: %w", d.config.schema, version+1, err)
			}
		}
		if version == 0 {
			_, err = c.exec(ctx, `INSERT INTO $.meta (cluster, version) VALUES ($1::text, 1)`, d.o.Cluster)
		} else {
			_, err = c.exec(ctx, `UPDATE $.meta SET version = $1::int`, int32(version+1))
		}
		return err
	})
}
