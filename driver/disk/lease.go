package disk

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/kuji-dev/kuji/driver"
)

// lease is held in memory: only this process can have the realm open.
type lease struct {
	*gate
	mu    sync.Mutex
	node  string
	until time.Time
}

// Hold implements driver.Lease.
func (l *lease) Hold(_ context.Context, node string, ttl time.Duration) (string, time.Duration, error) {
	if err := cmp.Or(l.mayWrite(), driver.CheckNode(node)); err != nil {
		return "", 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.node == "" || l.node == node || !now.Before(l.until) {
		l.node, l.until = node, now.Add(ttl)
	}
	return l.node, l.until.Sub(now), nil
}

// Holder implements driver.Lease.
func (l *lease) Holder(context.Context) (string, time.Duration, error) {
	if err := l.mayRead(); err != nil {
		return "", 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	left := time.Until(l.until)
	if l.node == "" || left <= 0 {
		return "", 0, nil
	}
	return l.node, left, nil
}

// Release implements driver.Lease.
func (l *lease) Release(_ context.Context, node string) error {
	if err := l.mayWrite(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.node == node {
		l.node = ""
	}
	return nil
}
