package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/wal"
)

// backupFlags are those of kuji backup.
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
	Realm     string  `json:"realm"`
	First     uint64  `json:"first"`   // where the backup's log begins
	Through   uint64  `json:"through"` // where it ends
	Entries   uint64  `json:"entries"` // copied this time
	Bytes     uint64  `json:"bytes"`   // copied this time
	Seconds   float64 `json:"seconds"` // that took
	Position  uint64  `json:"position,omitempty"`
	StateHash string  `json:"state_hash,omitempty"` // absent without a check
}

func (a *app) backupCommand() *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use:   "backup --to DIR",
		Short: "Bring a backup up to date, of a running server or of a data directory",
		Long: `Backup copies what a backup in a directory lacks: all of a new one, and from then on
what the logs have grown by. The server goes on meanwhile; everything that it had
acknowledged before is in the backup. If it ends early, run it again: it goes on.

The server's key needs the command admin. With --data it copies from a directory
that no server has open. Then it checks the backup as "kuji verify" does, which
reads all of it: with --check=false it does not.

A backup is a directory like a data directory, without its key. Keep a copy of the
file "key" elsewhere, and the backup secret: it has all codes. Never serve from a
backup: restore it. Not on a cluster.`,
		Example: `  kuji backup --to /backup/kuji --server https://kuji.example --key-file admin.key
  kuji backup --to /backup/kuji --data ./kuji-data --realm default
  kuji backup --to /backup/kuji --rate 20000000 --check=false`,
		Args: exactArgs(),
	}
	conn := a.clientCommand(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "`directory` of the backup; made if it is not there (required)")
	flags.StringVar(&f.data, "data", "", "data `directory` that no server has open, instead of a server")
	flags.Uint64Var(&f.rate, "rate", 0, "most `bytes` a second, at least 65536 (default: no limit)")
	flags.BoolVar(&f.check, "check", true, "check the whole backup in the end")
	flags.Lookup("realm").Usage, flags.Lookup("realm").DefValue = "`name` of the only realm to back up (default: all)", ""
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case f.to == "":
			return usageError{errors.New("missing flag --to: the directory of the backup")}
		case f.rate > 0 && f.rate < 1<<16:
			return usageError{fmt.Errorf("--rate %d: expected at least 65536 bytes a second", f.rate)}
		case f.data != "" && flags.Changed("server"):
			return usageError{errors.New("--data and --server: expected only one of them")}
		}
		var only []string
		if flags.Changed("realm") {
			only = []string{conn.realm}
		}
		if f.data != "" {
			return a.backupData(cmd.Context(), &f, only)
		}
		return a.backupServer(cmd.Context(), &f, conn, only)
	}
	return cmd
}

// backupData backs up realms of a data directory, or all.
func (a *app) backupData(ctx context.Context, f *backupFlags, realms []string) (err error) {
	if realms == nil {
		if realms, _, err = realmsIn(f.data); err != nil {
			return err
		}
	}
	return a.backup(ctx, f, realms, func(realm string) (kuji.BackupSource, func() error, error) { return kuji.BackupDir(f.data, realm) })
}

// backupServer backs up realms of a server, or all.
func (a *app) backupServer(ctx context.Context, f *backupFlags, conn *connection, realms []string) error {
	c, err := conn.dial()
	if err != nil {
		return err
	}
	if realms == nil {
		resp, err := call(ctx, c, "", c.admin.ListRealms, &kujiv1.ListRealmsRequest{})
		if err != nil {
			return err
		}
		realms = resp.GetRealms()
	}
	return a.backup(ctx, f, realms, func(realm string) (kuji.BackupSource, func() error, error) {
		return c.backupOf(realm), func() error { return nil }, nil
	})
}

func (a *app) backup(ctx context.Context, f *backupFlags, realms []string, open func(realm string) (kuji.BackupSource, func() error, error)) error {
	out := backupJSON{To: f.to, Realms: []backupRealmJSON{}}
	for _, realm := range realms {
		source, done, err := open(realm)
		if err != nil {
			return err
		}
		begun := time.Now()
		rep, err := kuji.ReceiveBackup(ctx, f.to, realm, limited(source, f.rate))
		if err = errors.Join(err, done()); err != nil {
			return err
		}
		one := backupRealmJSON{Realm: realm, First: rep.First, Through: rep.Through, Entries: rep.Entries, Bytes: rep.Bytes, Seconds: time.Since(begun).Seconds()}
		if f.check {
			rep, err := inDirectory(f.to).verifyRealm(ctx, realm, nil, nil)
			if wrong, ok := errors.AsType[*kuji.VerifyError](err); ok {
				return damageError{fmt.Errorf("the backup is wrong: %w", wrong)}
			}
			if err != nil {
				return err
			}
			one.Position, one.StateHash = rep.Position, hex.EncodeToString(rep.StateHash[:])
		}
		out.Realms = append(out.Realms, one)
	}
	return a.print(out, func(w io.Writer) {
		fprintf(w, "REALM\tFROM\tTHROUGH\tENTRIES COPIED\tBYTES COPIED\tSECONDS\tCHECKED\n")
		for _, r := range out.Realms {
			checked := "no"
			if r.StateHash != "" {
				checked = "state " + r.StateHash[:16]
			}
			fprintf(w, "%s\t%d\t%d\t%d\t%d\t%.1f\t%s\n", r.Realm, r.First, r.Through, r.Entries, r.Bytes, r.Seconds, checked)
		}
	})
}

// limited slows a source down to so many bytes a second; 0: as fast as it is.
func limited(source kuji.BackupSource, rate uint64) kuji.BackupSource {
	if rate == 0 {
		return source
	}
	return func(ctx context.Context, from uint64) iter.Seq2[kuji.BackupPart, error] {
		return func(yield func(kuji.BackupPart, error) bool) {
			begun, came := time.Now(), uint64(0)
			for part, err := range source(ctx, from) {
				came += uint64(len(part.Data) + len(part.Entry))
				if !yield(part, err) {
					return
				}
				wait := time.NewTimer(time.Until(begun.Add(time.Duration(float64(came) / float64(rate) * float64(time.Second)))))
				select {
				case <-wait.C:
				case <-ctx.Done():
					wait.Stop()
					yield(kuji.BackupPart{}, ctx.Err())
					return
				}
			}
		}
	}
}

// backupOf returns the source of a realm of a server.
func (c *client) backupOf(realm string) kuji.BackupSource {
	return func(ctx context.Context, from uint64) iter.Seq2[kuji.BackupPart, error] {
		return func(yield func(kuji.BackupPart, error) bool) {
			if err := c.readBackup(ctx, &kujiv1.BackupRequest{Realm: realm, FromCursor: from}, yield); err != nil {
				yield(kuji.BackupPart{}, err)
			}
		}
	}
}

// readBackup yields the parts of a stream. It returns nil if yield stops it.
func (c *client) readBackup(ctx context.Context, req *kujiv1.BackupRequest, yield func(kuji.BackupPart, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := c.admin.Backup(ctx, req)
	if err != nil {
		return err
	}
	var log []byte // of which entries are to be read
	for s.Receive() {
		m := s.Msg()
		part := kuji.BackupPart{File: m.GetFile(), Data: m.GetData()}
		switch b := m.GetBegin(); {
		case b != nil:
			part = kuji.BackupPart{Begin: &kuji.BackupBegin{First: b.GetFirst(), Through: b.GetThrough(), Files: b.GetFiles()}}
		case part.File == "":
			log = append(log, m.GetData()...)
			rest, on, err := entriesIn(log, yield)
			if !on || err != nil {
				return err
			}
			log = append(log[:0], rest...)
			continue
		}
		if !yield(part, nil) {
			return nil
		}
	}
	return s.Err()
}

// entriesIn yields the entries at the beginning of b that are whole, and returns the rest. on is false
// if yield stops it.
func entriesIn(b []byte, yield func(kuji.BackupPart, error) bool) (rest []byte, on bool, err error) {
	for {
		size, n := binary.Uvarint(b)
		switch {
		case n < 0, size > wal.MaxRecord:
			return nil, false, fmt.Errorf("the server sent an entry of %d bytes; at most %d are possible", size, wal.MaxRecord)
		case n == 0, size > uint64(len(b)-n):
			return b, true, nil
		}
		if !yield(kuji.BackupPart{Entry: slices.Clone(b[n : n+int(size)])}, nil) {
			return nil, false, nil
		}
		b = b[n+int(size):]
	}
}

func (a *app) restoreCommand() *cobra.Command {
	var from, data, keyName string
	cmd := &cobra.Command{
		Use:     "restore --from DIR --data DIR",
		Short:   "Make a data directory from a backup",
		GroupID: "offline",
		Long: `Restore copies a backup to a new data directory and checks it as "kuji verify" does.
The directory appears under its name when all of it is there and right. If restore
ends early, run it again: it goes on.

What came after the backup is gone: players do not have it, and a request id from
then is carried out anew. The realms go on in a new epoch, with a new seed.

--seal-key names a copy of the file "key" of the lost data directory. With it, the
first start reveals the seed that was in use when the backup ended, so that its
draws can be proven; without it they cannot. Give it only if the server that was
backed up is gone for good: as long as it runs, whoever knows that seed can predict
its draws.`,
		Example: `  kuji restore --from /backup/kuji --data ./kuji-data --seal-key /secret/kuji.key
  kuji serve --data ./kuji-data --must-exist`,
		Args: exactArgs(),
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "`directory` of the backup (required)")
	flags.StringVar(&data, "data", "", "`directory` to make, which must not exist (required)")
	flags.StringVar(&keyName, "seal-key", "", "`file` that is a copy of the lost directory's key (default: none, a new one is made)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if from == "" || data == "" {
			return usageError{errors.New("missing flag --from or --data: the backup, and the directory to make")}
		}
		key, err := a.readSealKey(keyName)
		if err != nil {
			return err
		}
		reports, err := kuji.Restore(cmd.Context(), filepath.ToSlash(from), filepath.ToSlash(data), key)
		if wrong, ok := errors.AsType[*kuji.VerifyError](err); ok {
			return damageError{fmt.Errorf("the backup is wrong: %w", wrong)}
		}
		if err != nil {
			return err
		}
		out := verifyJSON{Data: data, OK: true, Realms: []verifyRealmJSON{}}
		for _, r := range reports {
			out.Realms = append(out.Realms, newVerifyRealmJSON(r, nil))
		}
		return a.print(out, func(w io.Writer) { printVerify(w, out) })
	}
	return cmd
}

// readSealKey reads a key that seals seeds; nil: none is named.
func (a *app) readSealKey(name string) (*[32]byte, error) {
	if name == "" {
		return nil, nil
	}
	text, err := a.readFile(name, 1<<10)
	if err != nil {
		return nil, err
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(raw) != 32 {
		return nil, usageError{fmt.Errorf("--seal-key %s: expected 64 hexadecimal digits", name)}
	}
	return (*[32]byte)(raw), nil
}
