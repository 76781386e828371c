package verify

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/logged"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// judge decides the commands of an epoch again, unless this build lacks the epoch's rules.
type judge struct {
	realm    string
	state    *store.State
	seeds    map[uint64]ledger.Seed // that the log reveals, by epoch
	deciders []decider              // of the current epoch; none: its seed is not known, or its rules are not
	buf      []byte
}

// decider decides commands again, by one version of the rules.
type decider struct {
	j      *judge
	source *ledger.Source
	rules  *rules.Rules
	due    rules.Due
	tables *rules.Tables // of a catalog that the event being decided puts in force; nil: it does not
}

// prepare prepares to decide again what follows after an epoch's first few random values, by its rules or,
// if nobody knows those, by all that this build has.
func (j *judge) prepare(epoch *Epoch, seed ledger.Seed, used uint64) error {
	j.deciders = nil
	for _, version := range rules.Versions() {
		if epoch.Rules != 0 && epoch.Rules != version {
			continue
		}
		t, err := rules.Load(j.state, j.state.Catalog())
		if err != nil {
			return err
		}
		j.deciders = append(j.deciders, decider{j: j, source: seed.Source(j.realm, epoch.Epoch, used), rules: rules.NewVersion(version, j.state, t)})
	}
	if len(j.deciders) == 0 {
		epoch.Undecided = fmt.Sprintf("rules version %d decided it; this build has %v", epoch.Rules, rules.Versions())
	}
	return nil
}

// decideAgain decides an event's command again with the epoch's randomness: the result must be the same
// event, byte for byte. Of several rules tried, one must give all events, or the epoch is not decided.
func (j *judge) decideAgain(epoch *Epoch, le *logged.Event) error {
	var why error
	left := j.deciders[:0]
	for i := range j.deciders {
		err := j.deciders[i].decide(le)
		switch {
		case err == nil:
			left = append(left, j.deciders[i])
		case epoch.Rules != 0:
			return err
		default:
			why = cmp.Or(why, err)
		}
	}
	if j.deciders = left; why != nil && len(left) == 0 {
		epoch.Undecided = fmt.Sprintf("its begin was trimmed, so nothing says which rules decided it; this build has %v, which give another event at position %d, index %d: %v",
			rules.Versions(), le.At.Position, le.At.Index, why)
	}
	return nil
}

func (d *decider) decide(le *logged.Event) error {
	j, ev := d.j, le.Event
	w := store.Writer{Buf: j.buf[:0]}
	switch rules.Kind(ev.Kind) {
	case rules.KindCatalog, rules.KindApprove:
		return d.prepare(le)
	case rules.KindPropose, rules.KindWithdraw:
		if err := d.propose(le, &w); err != nil {
			return err
		}
	case rules.KindCodes:
		return j.importAgain(ev)
	case rules.KindClock:
		c, err := rules.SetClockOf(ev)
		if err != nil {
			return err
		}
		c.Write(&w, le.At.Time)
	case rules.KindDue:
		due, err := rules.DueOf(ev)
		if err == nil {
			err = d.rules.CheckDue(&due, le.At.Time)
		}
		if err != nil {
			return err
		}
		d.rules.DecideDue(&due, le.At.Time, d.source, &w)
	case rules.KindUpgrade:
		u, err := rules.UpgradeOf(ev)
		if err != nil {
			return err
		}
		u.Write(&w)
	default:
		cmd, _, err := rules.CommandOf(j.state, ev)
		if err != nil {
			return err
		}
		if err := cmd.Check(); err != nil {
			return fmt.Errorf("the logged command is malformed: %w", err)
		}
		if err := d.refused(&cmd, le.At.Time); err != nil {
			return fmt.Errorf("the logged command should have been refused: %w", err)
		}
		if d.rules.DueFor(&cmd, le.At.Time, &d.due) {
			return errors.New("what was due for the logged command should have been settled before")
		}
		d.rules.Decide(&cmd, le.At.Time, d.source, &w)
	}
	j.buf = w.Buf
	return agree(ev, w.Buf)
}

// refused returns why the engine must have refused a command, or nil.
func (d *decider) refused(cmd *rules.Command, now int64) error {
	if err := cmd.Allow(d.j.state.Level()); err != nil {
		return err
	}
	if err := d.rules.Resolve(cmd); err != nil {
		return err
	}
	if fault := d.rules.CheckID(cmd, now); fault != rules.IDAccepted {
		return errors.New(fault.String())
	}
	return nil
}

// prepare is decide for a catalog.
func (d *decider) prepare(le *logged.Event) error {
	var e store.Effect
	ev := le.Event
	effects := ev.Changes()
	for effects.Next(&e) {
		if e.Verb != store.Catalog {
			continue
		}
		c, err := catalog.Decode(e.Bytes)
		if err != nil {
			return err
		}
		begin, err := rules.LevelOf(ev)
		if err == nil && begin > 0 && !logged.IsNew(d.j.state) {
			err = errors.New("a catalog that is not the realm's first says at which format level it begins")
		}
		if err == nil {
			err = c.Allow(uint8(max(begin, d.j.state.Level())))
		}
		if err != nil {
			return err
		}
		p, err := d.prepared(le, c, begin)
		if err != nil {
			return err
		}
		d.tables = p.Tables
		var w store.Writer
		if err := p.Enter(d.j.state, le.At.Time, &w); err != nil {
			return err
		}
		return agree(ev, w.Buf)
	}
	return cmp.Or(effects.Err(), errors.New("a catalog event without a catalog"))
}

// prepared prepares the catalog of an event.
func (d *decider) prepared(le *logged.Event, c *catalog.Catalog, begin format.Level) (*rules.Prepared, error) {
	if rules.Kind(le.Kind) == rules.KindCatalog {
		note, err := rules.NoteOf(le.Event)
		if err != nil {
			return nil, err
		}
		return rules.Prepare(d.j.state, d.rules.Tables(), c, note, begin)
	}
	said, err := rules.PropositionOf(le.Event)
	if err != nil {
		return nil, err
	}
	waits, _, ok := rules.ProposalOf(d.j.state, said.Number)
	if !ok {
		return nil, fmt.Errorf("no proposal %d waits", said.Number)
	}
	if c.Hash() != waits.Hash {
		return nil, fmt.Errorf("proposal %d is another catalog than the one that was put in force", said.Number)
	}
	by := ""
	if said.Note != nil {
		by = said.Note.By
	}
	if err := waits.CheckApproval(d.rules.Tables(), by); err != nil {
		return nil, err
	}
	return rules.PrepareApproved(d.j.state, d.rules.Tables(), &waits, c, said.Note)
}

// propose writes the event of a proposal, or of its withdrawal, again.
func (d *decider) propose(le *logged.Event, w *store.Writer) error {
	said, err := rules.PropositionOf(le.Event)
	if err != nil {
		return err
	}
	s, t := d.j.state, d.rules.Tables()
	if said.Proposed == nil {
		waits, _, ok := rules.ProposalOf(s, said.Number)
		if !ok {
			return fmt.Errorf("no proposal %d waits", said.Number)
		}
		waits.Withdraw(said.Note, w)
		return nil
	}
	c, err := catalog.Decode(said.Proposed.Canonical)
	if err == nil {
		err = c.Allow(uint8(s.Level()))
	}
	if err != nil {
		return err
	}
	proposed := rules.NewProposing(c, said.Proposed.Note)
	same, err := proposed.Refused(s, t, s.Level())
	if err == nil && same != nil {
		err = fmt.Errorf("the same catalog waits already, as proposal %d", same.Number)
	}
	if err == nil {
		proposed.Write(s, t, le.At, w)
	}
	return err
}

// applied takes over what the event that was decided has put in force.
func (j *judge) applied() {
	for i := range j.deciders {
		if d := &j.deciders[i]; d.tables != nil {
			d.tables.Grown(j.state)
			d.rules.Reset(d.tables)
			d.tables = nil
		}
	}
}

// importAgain is decideAgain for an import of codes.
func (j *judge) importAgain(ev *store.Event) error {
	list, name, codes, err := rules.ImportOf(ev)
	if name == "" && err == nil {
		name = j.state.CodeListName(list)
	}
	if err == nil && len(codes) > 0 {
		err = kuji.CheckImport(name, codes)
	}
	if err != nil {
		return err
	}
	again, _, err := rules.Import(j.state, name, codes)
	if err == nil && !bytes.Equal(again, ev.Raw) { // without a byte of it: codes are secrets
		err = errors.New("an import of codes that no import writes like this")
	}
	return err
}

func agree(ev *store.Event, again []byte) error {
	const most = 256
	if !bytes.Equal(again, ev.Raw) {
		return fmt.Errorf("the revealed seed gives another outcome: % x instead of % x", again[:min(most, len(again))], ev.Raw[:min(most, len(ev.Raw))])
	}
	return nil
}
