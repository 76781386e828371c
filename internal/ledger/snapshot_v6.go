package ledger

import "slices"

// Version 6 of the format, written by builds up to commit d61c231 and for realms of the first format
// level: its seal does not say which rules decide the current epoch.

// sealFrom6 turns a seal of version 6 into one of version 7, with rules that are not known.
func sealFrom6(b []byte) []byte {
	if len(b) < sealRules {
		return b // too short for either: refused as such
	}
	return slices.Insert(slices.Clone(b), sealRules, 0)
}
