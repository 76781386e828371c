package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/driver"
)

// Two series of snapshots are kept that share no file, the newest and one before it, so damage in any one
// file leaves a state to recover from, as long as the log goes back to it:
//
//	a new series begins, and its first snapshot is durable
//	if the log is trimmed, read back from the disk: that snapshot, and the series before it
//	remove all other snapshots
//	if the log is trimmed, trim the log before the newest snapshot of the series before it
//
// A new snapshot that cannot be read back is removed, and the next one begins a series. If the series
// before it cannot be read, what is whole of it, or of an older one, takes its place: the log is kept from
// there on.

// ErrNotReadBack is in the error of Prune if the snapshot that was just written is gone again.
var ErrNotReadBack = errors.New("the snapshot was removed again")

// ErrStopped is what the Block of a loader returns to give up.
var ErrStopped = errors.New("the realm stopped or was closed before the snapshot was taken")

// Prune does this after a snapshot was written. newChecker returns a loader that keeps nothing.
func (s *Snapshots) Prune(ctx context.Context, trim bool, newChecker func() Loader) error {
	p := pruning{Snapshots: s, trim: trim, newChecker: newChecker}
	s.mu.Lock()
	newest, before := slices.Clone(s.newest), slices.Clone(s.before)
	s.mu.Unlock()
	there, _, err := s.List(ctx) // damaged ones too
	if err != nil {
		return err
	}
	// Newer ones were written by a node that has taken the realm over.
	last := newest[len(newest)-1].Position
	others := slices.DeleteFunc(without(there, newest), func(f Snapshot) bool { return f.Position > last })
	older := slices.DeleteFunc(slices.Clone(others), func(f Snapshot) bool { return f.Position >= newest[0].Position })
	if len(newest) > 1 && oneSeries(older) && len(older) == len(others) || len(others) == 0 {
		return nil // this was done when the newest series began
	}
	if trim {
		if _, _, err := p.readBack(ctx, newest); err != nil {
			return p.distrust(ctx, newest, err)
		}
	}
	kept, at, damage := p.otherSeries(ctx, older, before)
	if kept == nil {
		kept = older // none of them is good, or all may be
	}
	errs := []error{damage, s.remove(ctx, without(others, kept))}
	if trim && at.chain.index > 0 {
		// Keep the entry at the position: it proves that the snapshot belongs to this log.
		err := s.log.Trim(ctx, at.cursor)
		if err == nil {
			err = s.trimBelow(ctx, kept)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// trimBelow removes the payload files of entries before every snapshot that a reader can begin with.
func (s *Snapshots) trimBelow(ctx context.Context, kept []Snapshot) error {
	first, err := s.log.First(ctx)
	if err != nil || first <= 1 { // nothing was trimmed: who begins at the beginning needs all of them
		return err
	}
	for i := range kept {
		if kept[i].read && kept[i].cursor >= first {
			return s.trimPayloads(ctx, kept[i].Position)
		}
	}
	return nil
}

type pruning struct {
	*Snapshots
	trim       bool
	newChecker func() Loader
}

// oneSeries reports whether files are one series and nothing else, or nothing.
func oneSeries(files []Snapshot) bool {
	if len(files) == 0 {
		return true
	}
	series, ok := SeriesOf(files, files[len(files)-1])
	return ok && len(series) == len(files)
}

func without(files, some []Snapshot) []Snapshot {
	return slices.DeleteFunc(slices.Clone(files), func(f Snapshot) bool {
		return slices.ContainsFunc(some, func(o Snapshot) bool { return o.Name() == f.Name() })
	})
}

// otherSeries returns the newest series among files, up to its newest snapshot that can be read back and
// that the log goes back to, and that one's footer; nil if there is none. The error says what is damaged.
// Without trim, nothing is read, and there is no footer. before is the newest series, or nil.
func (p *pruning) otherSeries(ctx context.Context, files, before []Snapshot) (series []Snapshot, at Footer, err error) {
	var errs []error
	for len(files) > 0 {
		series, ok := before, len(before) > 0
		if before = nil; !ok {
			series, ok = SeriesOf(files, files[len(files)-1])
		}
		if !ok { // the rest of a removal, or not Kuji's
			files = files[:len(files)-1]
			continue
		}
		if !p.trim {
			return series, Footer{}, nil
		}
		whole, s, err := p.readBack(ctx, series)
		if errors.Is(err, ErrStopped) {
			return nil, Footer{}, err
		}
		if err != nil {
			errs = append(errs, err)
			p.BeginSeries()
		}
		first, err := p.log.First(ctx)
		if err != nil {
			return nil, Footer{}, errors.Join(append(errs, err)...)
		}
		if whole > 0 && s.cursor >= first {
			return series[:whole], s, errors.Join(errs...)
		}
		files = without(files, series)
	}
	return nil, Footer{}, errors.Join(errs...)
}

// readBack loads a series, and returns how many of its snapshots are whole, and the last one's footer.
func (p *pruning) readBack(ctx context.Context, series []Snapshot) (whole int, last Footer, err error) {
	checker := p.newChecker()
	for i := range series {
		if err := p.dropCache(ctx, series[i].Name()); err != nil {
			return i, last, fmt.Errorf("reading snapshots back: %w", err)
		}
		written, known := series[i].digest, series[i].read
		s, err := p.loadFile(ctx, series, i, checker)
		if err == nil && known && written != series[i].digest {
			err = &SnapshotError{series[i].Name(), errors.New("it is not what was written")}
		}
		if err != nil {
			return i, last, fmt.Errorf("reading snapshots back: %w", err)
		}
		last = s
	}
	return len(series), last, nil
}

// dropCache makes the next read of a file come from where it is kept, if the driver can do that.
func (p *pruning) dropCache(ctx context.Context, name string) error {
	file, err := p.log.OpenFile(ctx, name)
	if err != nil {
		return err
	}
	if d, ok := file.(driver.CacheDropper); ok {
		err = d.DropCache()
	}
	return errors.Join(err, file.Close())
}

// distrust removes a series' first snapshot, which cannot be read back. A longer series stays for now.
func (p *pruning) distrust(ctx context.Context, newest []Snapshot, cause error) error {
	if errors.Is(cause, ErrStopped) {
		return cause // it was not read to its end
	}
	p.BeginSeries()
	if len(newest) > 1 {
		return cause
	}
	p.mu.Lock()
	p.newest = nil
	p.mu.Unlock()
	return errors.Join(cause, ErrNotReadBack, p.remove(ctx, newest))
}

// remove removes snapshots, one by one: a driver may have to keep each removal small.
func (s *Snapshots) remove(ctx context.Context, files []Snapshot) error {
	var errs []error
	for i := range files {
		errs = append(errs, s.log.Remove(ctx, files[i].Name()))
	}
	return errors.Join(errs...)
}
