package drivertest

import (
	"bytes"
	"context"

	"github.com/kuji-dev/kuji/driver"
)

// change changes a board.
type change = func(old []byte) (data []byte, err error)

// Update implements [driver.Board].
func (d *brokenDriver) Update(ctx context.Context, change change) error {
	if d.update != nil {
		return d.update(d, ctx, change)
	}
	return d.Shared.Update(ctx, change)
}

// OnAppend implements [driver.Nudged].
func (d *brokenDriver) OnAppend(tell func(realm string, at driver.Cursor)) { d.tell = tell }

// Nudge implements [driver.Nudged].
func (d *brokenDriver) Nudge(_ string, at driver.Cursor) {
	if d.nudge != nil {
		d.nudge(d, at)
	}
}

// tells makes a realm's appends known, and its readers believe what they are told.
func (d *brokenDriver) tells(t *tweak, name string) {
	add, last := t.append, t.last
	t.append = func(ctx context.Context, after driver.Cursor, entry []byte) (driver.Cursor, error) {
		at, err := add(ctx, after, entry)
		if err == nil && d.tell != nil && !d.mute {
			d.tell(name, at)
		}
		return at, err
	}
	t.last = func(ctx context.Context) (driver.Cursor, error) {
		at, err := last(ctx)
		return max(at, d.nudged), err
	}
}

// overwrite calls change once, with what is there, and replaces what is there by then.
func overwrite(d *brokenDriver, ctx context.Context, change change) error {
	var data []byte
	err := d.Shared.Update(ctx, func(old []byte) (_ []byte, err error) {
		data, err = change(old)
		return old, err
	})
	if err != nil {
		return err
	}
	return d.Shared.Update(ctx, func([]byte) ([]byte, error) { return data, driver.CheckBoard(data) })
}

// boardBreaches are drivers that break the contract of boards.
var boardBreaches = []breach{
	{"a new board is empty and not nil", "BoardReplaced", brokenDriver{update: func(d *brokenDriver, ctx context.Context, change change) error {
		return d.Shared.Update(ctx, func(old []byte) ([]byte, error) { return change(append([]byte{}, old...)) })
	}}},
	{"the board only grows", "BoardReplaced", brokenDriver{update: func(d *brokenDriver, ctx context.Context, change change) error {
		return d.Shared.Update(ctx, func(old []byte) ([]byte, error) {
			data, err := change(old)
			if len(data) == 0 || bytes.HasPrefix(data, old) {
				return data, err
			}
			return append(old, data...), err
		})
	}}},
	{"what is equal is written", "BoardReplaced", brokenDriver{update: func(d *brokenDriver, ctx context.Context, change change) error {
		return d.Shared.Update(ctx, func(old []byte) ([]byte, error) {
			data, err := change(old)
			if err == nil && bytes.Equal(data, old) && old != nil {
				for _, again := range [][]byte{{}, old} {
					err = d.Shared.Update(ctx, func([]byte) ([]byte, error) { return again, nil })
				}
			}
			return data, err
		})
	}}},
	{"change is called once", "BoardChangedAgain", brokenDriver{update: overwrite}},
	{"an update is lost that had no error", "BoardRace", brokenDriver{update: func(d *brokenDriver, ctx context.Context, change change) error {
		return d.Shared.Update(ctx, func(old []byte) ([]byte, error) {
			data, err := change(old)
			if d.kept = append(d.kept, '.'); len(d.kept) == 5 {
				return old, err
			}
			return data, err
		})
	}}},
	{"nobody updates during a change", "BoardChangedAgain", brokenDriver{update: func(d *brokenDriver, ctx context.Context, change change) error {
		return d.Shared.Update(ctx, func(old []byte) ([]byte, error) {
			d.shared.Partition(1, true)
			defer d.shared.Partition(1, false)
			return change(old)
		})
	}}},
	{"a change that fails is written", "BoardRefused", brokenDriver{update: func(d *brokenDriver, ctx context.Context, change change) error {
		var failed error
		err := d.Shared.Update(ctx, func(old []byte) (data []byte, _ error) {
			data, failed = change(old)
			return data, nil
		})
		if failed != nil {
			return failed
		}
		return err
	}}},
	{"what is too large is cut off", "BoardRefused", brokenDriver{update: func(d *brokenDriver, ctx context.Context, change change) error {
		return d.Shared.Update(ctx, func(old []byte) ([]byte, error) {
			data, err := change(old)
			return data[:min(len(data), driver.MaxBoard)], err
		})
	}}},
	{"the board keeps a buffer", "BoardAliasing", brokenDriver{update: func(d *brokenDriver, ctx context.Context, change change) error {
		return d.Shared.Update(ctx, func(old []byte) ([]byte, error) {
			if d.kept != nil {
				old = d.kept
			}
			data, err := change(old)
			d.kept = data
			return data, err
		})
	}}},
	{"a lost answer is no error, and what it was about is written again", "BoardAnswerLost", brokenDriver{update: func(d *brokenDriver, ctx context.Context, change change) error {
		if data := d.kept; data != nil {
			d.kept = nil
			if err := d.Shared.Update(ctx, func([]byte) ([]byte, error) { return data, nil }); err != nil {
				return err
			}
		}
		var data []byte
		err := d.Shared.Update(ctx, func(old []byte) (_ []byte, err error) {
			data, err = change(old)
			return data, err
		})
		if err != nil {
			d.kept = data
		}
		return err
	}}},
	{"late updates replace newer ones", "BoardRequestLate", brokenDriver{update: func(d *brokenDriver, ctx context.Context, change change) error {
		var data []byte
		err := d.Shared.Update(ctx, func(old []byte) (_ []byte, err error) {
			data, err = change(old)
			return old, err
		})
		if err != nil {
			return err
		}
		_, err = call(ctx, d.Shared.(*node).log, driver.ErrUnknown, func() (driver.Cursor, error) {
			var s standing // when it arrives
			for _, e := range d.shared.board.entries {
				if err := s.take(e.Entry); err != nil {
					return 0, err
				}
			}
			r := record{follows: s.at(), content: data}
			return d.shared.append(d.shared.board, nil, r.bytes())
		})
		return err
	}}},
	{"a new process begins with nothing", "BoardReopened", brokenDriver{update: func(d *brokenDriver, ctx context.Context, change change) error {
		return d.Shared.Update(ctx, func(old []byte) ([]byte, error) {
			if d.kept == nil {
				d.kept, old = []byte{}, nil
			}
			return change(old)
		})
	}}},
	{"another replica lags", "BoardFailover", brokenDriver{update: func(d *brokenDriver, ctx context.Context, change change) error {
		return d.Shared.Update(ctx, func(old []byte) ([]byte, error) {
			if bytes.Count(old, []byte("\n")) == 3 {
				old = old[:bytes.LastIndexByte(old[:len(old)-1], '\n')+1]
			}
			return change(old)
		})
	}}},
	{"nobody is told of an append", "Nudged", brokenDriver{mute: true}},
	{"what a nudge says is taken for the log's end", "Nudged", brokenDriver{nudge: func(d *brokenDriver, at driver.Cursor) {
		d.nudged = at
	}}},
}
