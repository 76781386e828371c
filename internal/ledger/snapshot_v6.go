package ledger

import "slices"

// Version 6 of the format, written by builds up to commit d61c231 and for realms of the first
// format level: its footer does not say which rules decide the current epoch.

// footerOf turns a footer of version 6 into one of version 7, with rules that are not known.
func footerOf(version byte, b []byte) []byte {
	if version > 6 || len(b) < footerRules { // too short for either: refused as such
		return b
	}
	return slices.Insert(slices.Clone(b), footerRules, 0)
}
