package cli

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/backup"
	"github.com/kuji-dev/kuji/internal/cluster"
	"github.com/kuji-dev/kuji/internal/step"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/verify"
	"github.com/kuji-dev/kuji/wal"
)

type backupFlags struct {
	to, data string
	rate     uint64
	check    bool
}

type backupJSON struct {
	To     string            `json:"to"`
	Realms []backupRealmJSON `json:"realms"`
}

type backupRealmJSON struct {
	Realm     string      `json:"realm"`
	First     uint64      `json:"first"`   // where the backup's log begins
	Through   uint64      `json:"through"` // where it ends
	Entries   uint64      `json:"entries"` // copied this time
	Bytes     uint64      `json:"bytes"`   // copied this time
	Seconds   float64     `json:"seconds"` // that took
	Position  uint64      `json:"position,omitempty"`
	StateHash verify.Hash `json:"state_hash,omitzero"` // absent without a check
}

func backupCommand(a *app) *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{Use: "backup --to DIR", Short: "Back up a running server or a data directory"}
	conn := a.connection(cmd.Flags()).allRealms()
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "`directory` of the backup; made if it is not there (required)")
	flags.StringVar(&f.data, "data", "", "data `directory` that no server has open, instead of a server")
	flags.Uint64Var(&f.rate, "rate", 0, "most `bytes` a second, at least 65536 (default: no limit)")
	flags.BoolVar(&f.check, "check", true, "check the whole backup in the end")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case f.to == "":
			return usagef("missing flag --to: the directory of the backup")
		case f.rate > 0 && f.rate < 1<<16:
			return usagef("--rate %d: expected at least 65536 bytes a second", f.rate)
		case f.data != "":
			if err := conn.notWith("data"); err != nil {
				return err
			}
		}
		if err := refuseInside("to", f.to); err != nil {
			return err
		}
		if hasRealm(f.to) && !isBackup(f.to) {
			return refusedError{fmt.Sprintf("--to %s is a data directory: it has a key. Back up to another directory", f.to)}
		}
		realms, open, end, err := f.source(cmd.Context(), a, conn)
		if err != nil {
			return err
		}
		return errors.Join(backUp(cmd.Context(), a, &f, realms, open), end())
	}
	return cmd
}

// openSource returns what a realm's backup is copied from, and what ends it.
type openSource func(realm string) (backup.Source, func() error, error)

// source returns the realm of --realm, or all realms of a server, a data directory or a node's copy.
func (f *backupFlags) source(ctx context.Context, a *app, conn *connection) (realms []string, open openSource, end func() error, err error) {
	switch {
	case f.data == "":
		only := conn.only()
		c, err := conn.dial()
		if err != nil {
			return nil, nil, nil, err
		}
		realms, err = oneOr(only, func() ([]string, error) {
			resp, err := c.ListRealms(ctx, &kujiv1.ListRealmsRequest{})
			return resp.GetRealms(), err
		})
		return realms, func(realm string) (backup.Source, func() error, error) { return c.backupOf(realm), nothing, nil }, nothing, err
	case cluster.IsNode(f.data):
		c, err := cluster.OpenCopy(ctx, f.data)
		if err != nil {
			return nil, nil, nil, err
		}
		fprintf(a.stderr, "warning: this is what node %s of cluster %s has kept. What other nodes acknowledged without it is not in the backup\n", c.Node, c.Cluster)
		realms, _ = oneOr(conn.only(), func() ([]string, error) {
			for _, name := range c.Missing {
				fprintf(a.stderr, "warning: realm %s was kept by other nodes only\n", name)
			}
			return c.Realms, nil
		})
		return realms, c.Backup, c.Close, nil
	}
	realms, err = oneOr(conn.only(), func() ([]string, error) {
		names, _, err := realmsIn(f.data)
		if err == nil && len(names) == 0 {
			err = noRealm(f.data)
		}
		return names, err
	})
	return realms, func(realm string) (backup.Source, func() error, error) { return backup.Dir(f.data, realm) }, nothing, err
}

// oneOr returns the realm that is named, or all.
func oneOr(one string, all func() ([]string, error)) ([]string, error) {
	if one != "" {
		return []string{one}, nil
	}
	return all()
}

func backUp(ctx context.Context, a *app, f *backupFlags, realms []string, open openSource) error {
	out := backupJSON{To: f.to, Realms: []backupRealmJSON{}}
	for _, realm := range realms {
		source, done, err := open(realm)
		if err != nil {
			return err
		}
		begun := time.Now()
		rep, err := backup.Write(ctx, f.to, realm, limited(source, f.rate))
		if err = errors.Join(err, done()); err != nil {
			return err
		}
		one := backupRealmJSON{Realm: realm, First: rep.First, Through: rep.Through, Entries: rep.Entries, Bytes: rep.Bytes, Seconds: time.Since(begun).Seconds()}
		if f.check {
			rep, err := inDirectory(f.to).verifyRealm(ctx, realm, verify.Options{})
			if err != nil {
				return wrongBackup(err)
			}
			one.Position, one.StateHash = rep.Position, rep.StateHash
		}
		out.Realms = append(out.Realms, one)
	}
	return a.print(out, func(w io.Writer) {
		rows(w, "REALM\tFROM\tTHROUGH\tENTRIES COPIED\tBYTES COPIED\tSECONDS\tCHECKED", out.Realms, func(r backupRealmJSON) []any {
			checked := choose(f.check, fmt.Sprintf("state %x", r.StateHash[:8]), "no")
			return []any{r.Realm, r.First, r.Through, r.Entries, r.Bytes, fmt.Sprintf("%.1f", r.Seconds), checked}
		})
	})
}

// wrongBackup says of damage where it is.
func wrongBackup(err error) error {
	if _, wrong := errors.AsType[*verify.Error](err); wrong {
		return fmt.Errorf("the backup is wrong: %w", err)
	}
	return err
}

// hasRealm reports whether a directory has the log of a realm: it is a data directory or a backup.
func hasRealm(dir string) bool {
	exact := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`) // the directory's name is no pattern
	logs, err := filepath.Glob(filepath.Join(exact.Replace(dir), "realms", "*", "log"))
	return err == nil && len(logs) > 0
}

// isBackup reports whether a directory has realms and no key. A data directory has one from its first start.
func isBackup(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "key"))
	return errors.Is(err, fs.ErrNotExist) && hasRealm(dir)
}

// refuseBackup refuses a backup, and any place inside a backup or a data directory. Realms that continued in a
// backup would be another log's for the next one.
func refuseBackup(dir string) error {
	if isBackup(dir) {
		return refusedError{fmt.Sprintf("--data %s has realms and no key: it is a backup, which nobody may write to but \"kuji backup\". Make a data directory of it with \"kuji restore\". "+
			"If it is a data directory that has lost its file \"key\", put that back. Without it, make an empty one: then nobody can prove the draws of an epoch that a crash ended", dir)}
	}
	return refuseInside("data", dir)
}

// refuseInside refuses a directory that is somewhere below a backup or a data directory.
func refuseInside(flag, dir string) error {
	dir, err := filepath.Abs(dir)
	for up := filepath.Dir(dir); err == nil && up != dir; up = filepath.Dir(dir) {
		if dir = up; hasRealm(dir) {
			return refusedError{fmt.Sprintf("--%s lies in %s, which is a data directory or a backup: expected a place of its own", flag, dir)}
		}
	}
	return err
}

// noRealm says that a directory has nothing that could be checked or copied.
func noRealm(name string) error {
	return refusedError{name + " has no realm: what was there is gone, or nothing ever was"}
}

// limited slows a source down to rate bytes a second; 0: no limit.
func limited(source backup.Source, rate uint64) backup.Source {
	if rate == 0 {
		return source
	}
	return func(ctx context.Context, from uint64) iter.Seq2[backup.Part, error] {
		return func(yield func(backup.Part, error) bool) {
			begun, came := time.Now(), uint64(0)
			for part, err := range source(ctx, from) {
				came += uint64(len(part.Data) + len(part.Entry))
				if !yield(part, err) {
					return
				}
				step.Pause(ctx, time.Until(begun.Add(time.Duration(float64(came)/float64(rate)*float64(time.Second)))))
				if ctx.Err() != nil {
					yield(backup.Part{}, ctx.Err())
					return
				}
			}
		}
	}
}

func (c *api) backupOf(realm string) backup.Source {
	return func(ctx context.Context, from uint64) iter.Seq2[backup.Part, error] {
		return func(yield func(backup.Part, error) bool) {
			if err := c.readBackup(ctx, &kujiv1.BackupRequest{Realm: realm, FromCursor: from}, yield); err != nil {
				yield(backup.Part{}, err)
			}
		}
	}
}

// readBackup yields the parts of a stream. It returns nil if yield stops it.
func (c *api) readBackup(ctx context.Context, req *kujiv1.BackupRequest, yield func(backup.Part, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := c.Backup(ctx, req)
	if err != nil {
		return err
	}
	var log []byte // of which entries are to be read
	for s.Receive() {
		m, on := s.Msg(), false
		switch b := m.GetBegin(); {
		case b != nil:
			on = yield(backup.Part{Begin: &backup.Begin{First: b.GetFirst(), Through: b.GetThrough(), Files: b.GetFiles()}}, nil)
		case m.GetFile() != "":
			on = yield(backup.Part{File: m.GetFile(), Data: m.GetData()}, nil)
		default:
			log, on, err = entriesIn(append(log, m.GetData()...), yield)
		}
		if !on || err != nil {
			return err
		}
	}
	return s.Err()
}

// entriesIn yields the whole entries in b, and returns the rest. on is false if yield stops it.
func entriesIn(b []byte, yield func(backup.Part, error) bool) (rest []byte, on bool, err error) {
	for {
		size, n := binary.Uvarint(b)
		switch {
		case n < 0, size > wal.MaxRecord:
			return nil, false, fmt.Errorf("the server sent an entry of %d bytes; at most %d are possible", size, wal.MaxRecord)
		case n == 0, size > uint64(len(b)-n):
			return b, true, nil
		}
		if !yield(backup.Part{Entry: slices.Clone(b[n : n+int(size)])}, nil) {
			return nil, false, nil
		}
		b = b[n+int(size):]
	}
}
