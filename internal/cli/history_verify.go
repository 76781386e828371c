package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/history"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/verify"
)

type historyVerifyJSON struct {
	OK     bool                     `json:"ok"`
	Realms []historyVerifyRealmJSON `json:"realms"`
}

type historyVerifyRealmJSON struct {
	Realm   string `json:"realm"`
	OK      bool   `json:"ok"`
	Error   string `json:"error,omitempty"`   // the first difference
	Rebuild bool   `json:"rebuild,omitempty"` // the server builds it again when it starts
	From    uint64 `json:"from"`              // the first position that was compared; 0: none
	To      uint64 `json:"to"`                // the last
	Events  uint64 `json:"events"`
	State   plain  `json:"state,omitzero"`
	proven  uint64 // the first event that is
}

type historyVerifyFlags struct {
	auditFlags
	realm, history string
	rebuild        bool
}

func historyVerifyCommand(a *app) *cobra.Command {
	f := &historyVerifyFlags{}
	cmd := &cobra.Command{
		Use:   "verify --data DIR",
		Short: "Compare histories with their logs, event by event",
		RunE:  func(cmd *cobra.Command, _ []string) error { return verifyHistories(cmd.Context(), a, f) },
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.realm, "realm", "", "`name` of the only realm to compare (default: all)")
	flags.StringVar(&f.history, "history", historySQLite, "where the histories are, as in kuji serve: sqlite or a `URL`")
	flags.BoolVar(&f.rebuild, "rebuild", false, "let the server build a damaged history again when it starts")
	return cmd
}

func (f *historyVerifyFlags) check() error {
	if err := f.auditFlags.check(); err != nil {
		return err
	}
	switch {
	case f.history != historySQLite && !history.IsURL(f.history):
		return usagef("--history: expected sqlite or the URL of a PostgreSQL database, postgres://…") // it may be one with a password
	case f.history == historySQLite && f.data == "":
		return usagef("--cluster: expected --history postgres://… with it: a file of SQLite is that of one node, verify it there with --data")
	}
	return nil
}

func verifyHistories(ctx context.Context, a *app, f *historyVerifyFlags) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	from, err := openAudit(ctx, a, &f.auditFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.end()) }()
	realms, err := oneOr(f.realm, func() ([]string, error) {
		names, _, err := from.realms(ctx)
		return names, err
	})
	if err != nil {
		return err
	}
	out, damage := historyVerifyJSON{OK: true, Realms: []historyVerifyRealmJSON{}}, []error(nil)
	for _, name := range realms {
		one, err := f.verify(ctx, from, name)
		if kuji.CodeOf(err) == kuji.CodeNotFound && f.realm == "" { // it has no history
			continue
		}
		if damaged, ok := errors.AsType[*history.DamagedError](err); ok {
			out.OK, one.Error = false, damaged.Error()
			damage = append(damage, fmt.Errorf("realm %s: the history is damaged: %w", name, damaged))
		} else if err != nil {
			return err
		}
		out.Realms = append(out.Realms, one)
	}
	if len(damage) > 0 {
		err = damageError{errors.Join(damage...)}
	}
	return cmp.Or(a.print(out, func(w io.Writer) { out.print(w) }), err)
}

// verify compares the history of a realm with its log.
func (f *historyVerifyFlags) verify(ctx context.Context, from *auditSource, realm string) (out historyVerifyRealmJSON, err error) {
	out.Realm = realm
	db, err := history.Open(ctx, historyOf(f.history, f.data, realm), realm, history.Options{MustExist: true})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	report, err := compareHistory(ctx, db, from, realm)
	out.OK, out.From, out.To, out.Events = err == nil, report.From, report.To, report.Events
	st := report.State
	out.proven = max(st.ProvenFrom, 1)
	out.State = plain{Message: &kujiv1.HistoryState{Position: st.Position, CompleteFrom: st.CompleteFrom, KeptFrom: st.KeptFrom, KeptFromUnixMs: st.KeptFromTime, ProvenFrom: st.ProvenFrom}}
	if _, damaged := errors.AsType[*history.DamagedError](err); damaged && f.rebuild {
		if failed := db.Rebuild(ctx); failed != nil {
			return out, failed
		}
		out.Rebuild = true
	}
	return out, err
}

// compareHistory compares a history with the events of a log, which are verified as they come.
func compareHistory(ctx context.Context, db *history.DB, from *auditSource, realm string) (history.Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, wrong := make(chan kuji.Record, 1024), make(chan error, 1)
	go func() {
		defer close(events)
		_, err := from.verifyRealm(ctx, realm, verify.Options{Seen: func(rec kuji.Record) {
			select {
			case events <- rec:
			case <-ctx.Done():
			}
		}})
		if _, damaged := errors.AsType[*verify.Error](err); damaged {
			err = fmt.Errorf("the log: %w", err)
		}
		wrong <- err
	}()
	return db.Verify(ctx, func(yield func(kuji.Record, error) bool) {
		for rec := range events {
			if !yield(rec, nil) {
				return
			}
		}
		if err := <-wrong; err != nil {
			yield(kuji.Record{}, err)
		}
	})
}

func (v *historyVerifyJSON) print(w io.Writer) {
	if len(v.Realms) == 0 {
		fprintf(w, "no realm has a history there\n")
		return
	}
	rows(w, "REALM\tRESULT\tFROM\tTO\tEVENTS\tPROVEN FROM", v.Realms, func(r historyVerifyRealmJSON) []any {
		return []any{r.Realm, verdict[r.OK], r.From, r.To, r.Events, r.proven}
	})
	for _, r := range v.Realms {
		if r.Rebuild {
			fprintf(w, "\nThe server builds the history of realm %s again when it starts.\n", r.Realm)
		}
	}
}
