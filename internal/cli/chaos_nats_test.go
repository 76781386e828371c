//go:build unix

package cli

type natsStore struct{}

func (*natsStore) open(c *chaos)         {}
func (*natsStore) faults() []fault       { return nil }
func (*natsStore) kept(*chaos) []keptLog { return nil }
