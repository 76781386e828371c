package kuji

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// decidedVersions are the versions of the rules by which this build can decide again, the newest first.
// Recovery, followers and feeds read logs of all versions: they carry out effects. Only the verifier
// needs the rules. Of an epoch of another version it checks the chain, the effects, the state and the
// snapshots, and names it.
var decidedVersions = []uint8{rulesVersion, 5}

// decider decides the commands of an epoch again, by one version of the rules.
type decider struct {
	v       *verifier
	version uint8
	source  *ledger.Source
	rules   *rules.Rules
	tables  *rules.Tables // of a catalog that the event being decided puts in force; nil: it does not
}

// prepare prepares to decide again what follows in the newest epoch, behind its first few random values.
// If nobody knows which rules decided it, all that this build has are tried: see decideAgain.
func (v *verifier) prepare(seed ledger.Seed, used uint64) error {
	epoch := &v.report.Epochs[len(v.report.Epochs)-1]
	v.deciders = nil
	for _, version := range decidedVersions {
		if epoch.Rules != 0 && epoch.Rules != version {
			continue
		}
		t, err := rules.Load(v.state, v.state.Catalog())
		if err != nil {
			return err
		}
		v.deciders = append(v.deciders, decider{v: v, version: version, source: seed.Source(v.realm, epoch.Epoch, used), rules: rules.NewVersion(version, v.state, t)})
	}
	if len(v.deciders) == 0 {
		epoch.Undecided = fmt.Sprintf("rules version %d decided it; this build has %v", epoch.Rules, decidedVersions)
	}
	return nil
}

// decideAgain decides an event's command again with the epoch's randomness. The result must be the
// same event, byte for byte. If the version of the rules is not known, one of those that are tried must
// give all events; otherwise the epoch is not decided.
func (v *verifier) decideAgain(epoch *EpochReport, le *loggedEvent) error {
	if epoch.Rules != 0 {
		for i := range v.deciders {
			if err := v.deciders[i].decide(le); err != nil {
				return err
			}
		}
		return nil
	}
	var why error
	left := v.deciders[:0]
	for i := range v.deciders {
		if err := v.deciders[i].decide(le); err != nil {
			why = cmp.Or(why, err)
			continue
		}
		left = append(left, v.deciders[i])
	}
	if v.deciders = left; why != nil && len(left) == 0 {
		epoch.Undecided = fmt.Sprintf("its begin was trimmed, so nothing says which rules decided it; this build has %v, which give another event at position %d, index %d: %v",
			decidedVersions, le.at.Position, le.at.Index, why)
	}
	return nil
}

// decide decides an event's command again.
func (d *decider) decide(le *loggedEvent) error {
	v, ev := d.v, le.event
	switch rules.Kind(ev.Kind) {
	case rules.KindCatalog:
		return d.prepare(ev)
	case rules.KindClock:
		return v.setClockAgain(le)
	case rules.KindCodes:
		return v.importAgain(ev)
	case rules.KindUpgrade:
		return v.upgradeAgain(ev)
	}
	cmd, _, err := rules.CommandOf(v.state, ev)
	if err != nil {
		return err
	}
	if err := cmd.Check(); err != nil {
		return fmt.Errorf("the logged command is malformed: %w", err)
	}
	if err := cmd.Allow(v.state.Level()); err != nil {
		return fmt.Errorf("the logged command should have been refused: %w", err)
	}
	if err := d.rules.Unknown(&cmd); err != nil {
		return fmt.Errorf("the logged command should have been refused: %w", err)
	}
	if fault := d.rules.CheckID(cmd.ID, le.at.Time); fault != rules.IDTaken {
		return fmt.Errorf("the logged command should have been refused: %v", fault)
	}
	w := store.Writer{Buf: v.buf[:0]}
	d.rules.Decide(&cmd, le.at.Time, d.source, &w)
	v.buf = w.Buf
	return agree(ev, w.Buf)
}

// prepare is decide for a catalog.
func (d *decider) prepare(ev *store.Event) error {
	var e store.Effect
	effects := ev.Changes()
	for effects.Next(&e) {
		if e.Verb != store.Catalog {
			continue
		}
		c, err := catalog.Decode(e.Bytes)
		if err != nil {
			return err
		}
		note, err := rules.NoteOf(ev)
		if err != nil {
			return err
		}
		begin, err := rules.LevelOf(ev)
		if err == nil && begin > 0 && !isNew(d.v.state) {
			err = errors.New("a catalog that is not the realm's first says at which format level it begins")
		}
		if err == nil {
			err = c.Allow(uint8(max(begin, d.v.state.Level())))
		}
		if err != nil {
			return err
		}
		p, err := rules.Prepare(d.v.state, d.rules.Tables(), c, note, begin)
		if err != nil {
			return err
		}
		d.tables = p.Tables
		return agree(ev, p.Event)
	}
	return cmp.Or(effects.Err(), errors.New("a catalog event without a catalog"))
}

// applied takes over what the event that was decided has put in force.
func (d *decider) applied() {
	if d.tables != nil {
		d.rules.Reset(d.tables)
		d.tables = nil
	}
}

// setClockAgain is decideAgain for an event that sets the clock.
func (v *verifier) setClockAgain(le *loggedEvent) error {
	c, err := rules.SetClockOf(le.event)
	if err != nil {
		return err
	}
	w := store.Writer{Buf: v.buf[:0]}
	c.Write(&w, le.at.Time)
	v.buf = w.Buf
	return agree(le.event, w.Buf)
}

// upgradeAgain is decideAgain for an event that raises the format level.
func (v *verifier) upgradeAgain(ev *store.Event) error {
	u, err := rules.UpgradeOf(ev)
	if err != nil {
		return err
	}
	w := store.Writer{Buf: v.buf[:0]}
	u.Write(&w)
	v.buf = w.Buf
	return agree(ev, w.Buf)
}

// importAgain is decideAgain for an import of codes.
func (v *verifier) importAgain(ev *store.Event) error {
	list, name, codes, err := rules.ImportOf(ev)
	if name == "" && err == nil {
		name = v.state.CodeListName(list)
	}
	if err == nil && len(codes) > 0 {
		err = cmp.Or(checkList(name), checkCodes(codes))
	}
	if err != nil {
		return err
	}
	again, _, err := rules.Import(v.state, name, codes)
	if err == nil && !bytes.Equal(again, ev.Raw) { // without a byte of it: codes are secrets
		err = errors.New("an import of codes that no import writes like this")
	}
	return err
}

// agree compares an event with the one that was decided again.
func agree(ev *store.Event, again []byte) error {
	const most = 256
	if !bytes.Equal(again, ev.Raw) {
		return fmt.Errorf("the revealed seed gives another outcome: % x instead of % x", again[:min(most, len(again))], ev.Raw[:min(most, len(ev.Raw))])
	}
	return nil
}
