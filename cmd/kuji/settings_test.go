package main

import "testing"

func TestWithoutPassword(t *testing.T) {
	for value, want := range map[string]string{
		"sqlite":                        "sqlite",
		"postgres://db/kuji":            "postgres://db/kuji",
		"postgres://ann@db/kuji?b&a":    "postgres://ann@db/kuji?b&a",
		"postgres://ann:s3cret@db/kuji": "postgres://ann:xxxxx@db/kuji",
		"postgres://db/kuji?user=ann&password=s3cret&a=b":    "postgres://db/kuji?user=ann&password=xxxxx&a=b",
		"postgres://db/kuji?p%61ssword=s3cret&sslPassword=s": "postgres://db/kuji?p%61ssword=xxxxx&sslPassword=xxxxx",
		"postgres://ann:s3%cret@db/kuji":                     "postgres://xxxxx",
		"postgres://ann@db/kuji":                             "postgres://ann@db/kuji",
		"nats://s3cret@10.0.0.1:4222":                        "nats://xxxxx@10.0.0.1:4222",
	} {
		if got := withoutPassword(value); got != want {
			t.Errorf("withoutPassword(%q) = %q, want %q", value, got, want)
		}
	}
}
