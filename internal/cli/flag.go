package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kuji-dev/kuji"
)

// expected says, by the type of a flag, what its values look like.
var expected = map[string]string{
	"bool":     "true or false",
	"duration": "a duration such as 500ms, 10s or 1m30s",
	"int":      "a whole number",
	"int64":    "a whole number",
	"uint32":   "a whole number from 0 to 4294967295",
	"uint64":   "a whole number, 0 or more",
	"float64":  "a number",
}

// flagError says what is wrong with the value of a flag, in the form of every other message.
func flagError(_ *cobra.Command, err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok || expected[bad.GetFlag().Value.Type()] == "" {
		return err
	}
	return fmt.Errorf("--%s %q: expected %s", bad.GetFlag().Name, bad.GetValue(), expected[bad.GetFlag().Value.Type()])
}

// engineFlags are the flags of serve that the engine checks, by the names that it calls them.
var engineFlags = map[string]string{
	"SegmentSize": "segment-size", "SyncEvery": "sync-every", "TrimLog": "trim-log",
}

// optionError turns an engine's error about its options into one about flags.
func optionError(err error) error {
	e, ok := errors.AsType[*kuji.Error](err)
	if !ok || e.Code != kuji.CodeInvalid || engineFlags[e.Field] == "" {
		return err
	}
	return usagef("--%s: %s", engineFlags[e.Field], e.Message)
}

// quantity is what a flag gives a number as: a duration, too.
type quantity interface {
	~int | ~int64 | ~uint32 | ~uint64
}

func atLeast[N quantity](flag string, value, least N) error {
	if value < least {
		return usagef("--%s %v: expected at least %v", flag, value, least)
	}
	return nil
}

// within checks a number that has a highest value too.
func within[N quantity](flag string, value, least, most N) error {
	if value < least || value > most {
		return usagef("--%s %v: expected from %v to %v", flag, value, least, most)
	}
	return nil
}
