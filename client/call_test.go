package client

import (
	"testing"
	"time"
)

// TestRetryAfter: both forms of the header are read, and nothing else.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"3":                             3 * time.Second,
		"0":                             0,
		"Sun, 29 Nov 2026 12:01:00 GMT": time.Minute,
		"Sun, 29 Nov 2026 11:00:00 GMT": 0, // it has come
		"":                              0,
		"soon":                          0,
		"-1":                            0,
		"99999999999999999999":          0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
