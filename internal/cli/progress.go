package cli

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// say writes a line about progress to standard output, for people only.
func (a *app) say(format string, args ...any) {
	if !a.json {
		fprintf(a.stdout, format+"\n", args...) // the table's writer reports a lost stdout
	}
}

// bar reports whether to show a progress bar: only to somebody who looks.
func (a *app) bar() bool { return !a.json && isTerminal(a.stdout) && isTerminal(a.stderr) }

// showProgress draws a progress bar for something that takes this long, with
// what describe says next to it, until ctx ends or the returned function is
// called. Where nobody looks it does nothing.
func (a *app) showProgress(ctx context.Context, length time.Duration, describe func() string) (stop func()) {
	begin := time.Now()
	return a.showBar(ctx, length.Milliseconds(), func() int64 { return time.Since(begin).Milliseconds() }, describe)
}

// showBar is showProgress for something that is done when done returns all.
func (a *app) showBar(ctx context.Context, all int64, done func() int64, describe func() string) (stop func()) {
	if !a.bar() {
		return func() {}
	}
	bar := progressbar.NewOptions64(all,
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionClearOnFinish(),
	)
	stopped := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			bar.Describe(describe())
			_ = bar.Set64(min(done(), all-1)) // a bar that fails fails to nobody's harm
			select {
			case <-tick.C:
			case <-stopped:
				_ = bar.Clear()
				return
			case <-ctx.Done():
				_ = bar.Clear()
				return
			}
		}
	})
	return func() {
		close(stopped)
		drawing.Wait()
	}
}

// percentile returns the value below which p thousandths of a sorted list lie
// (nearest rank), rounded to thousandths.
func percentile(sorted []float64, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 999) / 1000
	return math.Round(sorted[max(rank, 1)-1]*1000) / 1000
}
