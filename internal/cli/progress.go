package cli

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// said are lines that wait until a progress bar no longer has the line.
type said struct {
	mu    sync.Mutex
	bars  int
	lines []string
}

// say writes a line about progress to standard output, for people only.
func (a *app) say(format string, args ...any) {
	if a.json {
		return
	}
	a.said.mu.Lock()
	defer a.said.mu.Unlock()
	a.said.lines = append(a.said.lines, sprintf(format+"\n", args...))
	a.sayHeld()
}

// sayHeld writes what was said, unless a bar has the line. The caller holds mu.
func (a *app) sayHeld() {
	if a.said.bars == 0 {
		_, _ = io.WriteString(a.stdout, strings.Join(a.said.lines, "")) // the table's writer reports a lost stdout
		a.said.lines = nil
	}
}

// barred notes that a bar begins, or ends.
func (a *app) barred(n int) {
	a.said.mu.Lock()
	defer a.said.mu.Unlock()
	a.said.bars += n
	a.sayHeld()
}

// showProgress draws a bar with what describe says, until ctx ends or stop is called; on a terminal only.
func (a *app) showProgress(ctx context.Context, length time.Duration, describe func() string) (stop func()) {
	begin := time.Now()
	return a.showBar(ctx, length.Milliseconds(), func() int64 { return time.Since(begin).Milliseconds() }, describe)
}

// showBar is showProgress for something that is done when done returns all.
func (a *app) showBar(ctx context.Context, all int64, done func() int64, describe func() string) (stop func()) {
	if a.json || !isTerminal(a.stdout) || !isTerminal(a.stderr) {
		return func() {}
	}
	bar := progressbar.NewOptions64(all,
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionClearOnFinish(),
	)
	a.barred(1)
	ctx, cancel := context.WithCancel(ctx)
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			bar.Describe(describe())
			_ = bar.Set64(min(done(), all-1)) // if it fails, only the bar is wrong
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		_ = bar.Clear()
	})
	return func() {
		cancel()
		drawing.Wait()
		a.barred(-1)
	}
}
