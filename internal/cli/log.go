package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/wal"
)

func logCommand(a *app) *cobra.Command {
	return group("log", "Look into the log of a realm, or any log that package wal wrote",
		logStatCommand(a), logDumpCommand(a), logVerifyCommand(a), logEventsCommand(a))
}

func openLog(dir string) (*wal.Log, error) {
	l, err := wal.Open(dir, wal.Options{ReadOnly: true})
	return l, logFailure(err)
}

// logFailure marks arguments that do not lead to a log or to a record.
func logFailure(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return noLog(err)
	case errors.Is(err, wal.ErrNotFound):
		return refusedError{err.Error()}
	}
	return err
}

func noLog(err error) error {
	return usagef("%w; a realm's log is the directory DATA/realms/NAME/log", err)
}

type logDumpJSON struct {
	Offset uint64 `json:"offset"`
	Bytes  int    `json:"bytes"`
	Data   []byte `json:"data"` // base64
}

func logDumpCommand(a *app) *cobra.Command {
	var from, count uint64
	cmd := &cobra.Command{
		Use:   "dump DIR",
		Short: "Print the records of a log",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("count") {
				count = math.MaxUint64
			}
			if err := atLeast("count", count, 1); err != nil {
				return err
			}
			return dumpLog(cmd.Context(), a, args[0], from, count)
		},
	}
	cmd.Flags().Uint64Var(&from, "from", 0, "`offset` of the first record (default: the oldest)")
	cmd.Flags().Uint64Var(&count, "count", 0, "how many records at most (default: all)")
	return cmd
}

// shownBytes is how much of a record a person sees.
const shownBytes = 48

func dumpLog(ctx context.Context, a *app, dir string, from, count uint64) (err error) {
	l, err := openLog(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	out := bufio.NewWriter(output{a})
	defer func() { err = errors.Join(err, out.Flush()) }()
	for rec, err := range l.Records(max(from, l.First())) {
		switch {
		case err != nil:
			return logFailure(err)
		case ctx.Err() != nil:
			return ctx.Err()
		case count == 0:
			return nil
		}
		count--
		if a.json {
			err = encodeJSON(out, logDumpJSON{rec.Offset, len(rec.Data), rec.Data})
		} else {
			more := when(len(rec.Data) > shownBytes, "…")
			_, err = io.WriteString(out, sprintf("%d\t%d bytes\t%s%s\n", rec.Offset, len(rec.Data), strconv.QuoteToASCII(string(rec.Data[:min(len(rec.Data), shownBytes)])), more))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func logEventsCommand(a *app) *cobra.Command {
	var realm string
	var what auditFlags
	cmd := &cobra.Command{
		Use:   "events --data DIR",
		Short: "Print what happened in a realm, one JSON object a line",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := what.check(); err != nil {
				return err
			}
			from, err := openAudit(cmd.Context(), a, &what)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, from.end()) }()
			a.printed = true
			out := bufio.NewWriter(a.stdout)
			var lost error // the first write that failed
			_, err = from.verify(cmd.Context(), []string{realm}, nil, func(_ string, rec kuji.Record) {
				if lost == nil {
					lost = encodeJSON(out, server.Event(&rec))
				}
			})
			if cmd.Context().Err() != nil {
				return err // the check continues in the background, and writes to out
			}
			return errors.Join(err, lost, out.Flush())
		},
	}
	what.add(cmd)
	cmd.Flags().StringVar(&realm, "realm", "default", "`name` of the realm")
	return cmd
}

type logStatJSON struct {
	Log      string `json:"log"`
	LogID    string `json:"log_id"`  // hexadecimal: it does not fit into a number of JSON
	First    uint64 `json:"first"`   // oldest offset kept
	Next     uint64 `json:"next"`    // offset that the next append gets
	Records  uint64 `json:"records"` // kept
	Segments int    `json:"segments"`
	Bytes    int64  `json:"bytes"` // of all segments
}

func logStatCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "stat DIR",
		Short: "Show what a log holds: offsets, records, segments, bytes",
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := openLog(args[0])
			if err != nil {
				return err
			}
			st := l.Stat()
			if err := l.Close(); err != nil {
				return err
			}
			out := logStatJSON{
				Log: args[0], LogID: fmt.Sprintf("%016x", st.LogID), First: st.First, Next: st.Next,
				Records: st.Next - st.First, Segments: st.Segments, Bytes: st.Bytes,
			}
			return a.print(out, func(w io.Writer) {
				fprintf(w, "log id\t%s\nfirst offset\t%d\nnext offset\t%d\nrecords\t%d\n", out.LogID, out.First, out.Next, out.Records)
				fprintf(w, "segments\t%d\nbytes\t%d\n", out.Segments, out.Bytes)
			})
		},
	}
}

type logVerifyJSON struct {
	Log      string          `json:"log"`
	OK       bool            `json:"ok"`
	First    uint64          `json:"first"`
	Next     uint64          `json:"next"`    // after the last sound record that follows without a gap
	Durable  uint64          `json:"durable"` // the highest that the files say was durable
	Segments int             `json:"segments"`
	Groups   int64           `json:"groups"`
	Records  int64           `json:"records"`
	Bytes    int64           `json:"bytes"`
	Torn     int64           `json:"torn_bytes"` // at the end, never durable: the next start cuts them off
	Damage   []logDamageJSON `json:"damage"`
}

type logDamageJSON struct {
	File    string `json:"file"`
	Byte    int64  `json:"byte"`
	Offset  uint64 `json:"offset"` // of the first record that it touches
	Message string `json:"message"`
}

func logVerifyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR",
		Short: "Check every byte of a log",
		RunE:  func(cmd *cobra.Command, args []string) error { return verifyLog(cmd.Context(), a, args[0]) },
	}
}

func verifyLog(ctx context.Context, a *app, dir string) error {
	r, err := wal.Verify(ctx, dir, wal.Options{})
	if err != nil {
		return logFailure(err)
	}
	if len(r.Segments) == 0 && len(r.Damage) == 0 {
		return noLog(fmt.Errorf("no log in %s: none of its files ends in .wal", dir))
	}
	out := logVerifyJSON{
		Log: dir, OK: len(r.Damage) == 0, First: r.First, Next: r.Next, Durable: r.Durable, Segments: len(r.Segments),
		Groups: r.Groups, Records: r.Records, Bytes: r.Bytes, Torn: r.Torn, Damage: []logDamageJSON{},
	}
	var damage []error
	for _, d := range r.Damage {
		out.Damage = append(out.Damage, logDamageJSON{d.File, d.Pos, d.Offset, d.Error()})
		damage = append(damage, d)
	}
	if !out.OK {
		err = damageError{errors.Join(damage...)}
	}
	return cmp.Or(a.print(out, func(w io.Writer) {
		fprintf(w, "%s: %s, %s, %s; %s torn off at the end\n", verdict[out.OK], counted(out.Segments, "segment"), counted(out.Records, "record"), counted(out.Bytes, "byte"), counted(out.Torn, "byte"))
	}), err)
}
