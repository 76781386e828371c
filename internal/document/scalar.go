package document

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The texts of numbers and durations are read as they stand in the source. What YAML takes for a number (1_000, 0x10,
// 010, 1e3) depends on its version.

// Integer reads [0-9]+ without leading zeros. The second result says what is wrong; "": nothing.
func Integer(s string) (uint64, string) {
	if wrong := NumberShape(s, false); wrong != "" {
		return 0, wrong
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, "the number is too large"
	}
	return v, ""
}

// NumberShape says what keeps s from being a number as catalogs write it, or nothing.
func NumberShape(s string, fraction bool) string {
	if s == "" {
		return "write a number"
	}
	body := strings.TrimLeft(s, "+-")
	switch {
	case s[0] == '-':
		return "it must not be negative"
	case s[0] == '+':
		return "write it without a sign"
	case strings.HasSuffix(s, "%"):
		return `write it without "%"`
	case len(body) > 1 && body[0] == '0' && strings.ContainsAny(body[1:2], "xXoObB"):
		return "write it in decimal digits"
	case strings.ContainsAny(s, "_, '"):
		return "write the digits without separators"
	}
	whole, frac, point := strings.Cut(s, ".")
	switch {
	case !strings.ContainsAny(body[:min(1, len(body))], "0123456789."):
		return "it is not a number"
	case strings.ContainsAny(s, "eE") && strings.Trim(s, "0123456789.eE+-") == "":
		return "write it without an exponent"
	case strings.Trim(s, "0123456789.") != "" || strings.Contains(frac, "."):
		return "it is not a number"
	case point && !fraction:
		return "it has a fraction"
	case point && (whole == "" || frac == ""):
		return "write a digit on both sides of the point"
	case len(whole) > 1 && whole[0] == '0':
		return "write it without leading zeros"
	}
	return ""
}

// durationUnits are the units of a duration, largest first.
var durationUnits = []struct {
	name string
	unit time.Duration
}{
	{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
}

// Duration reads whole numbers with units from d to ms, larger units first, each at most once:
// 30d, 1h30m, 500ms. It does not use time.ParseDuration, which computes fractions in floats.
func Duration(s string) (time.Duration, string) {
	if s == "" {
		return 0, "write it as in 12h"
	}
	var total time.Duration
	rest, next := s, 0
	for rest != "" {
		number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		if number == "" {
			return 0, "write whole numbers with the units d, h, m, s and ms, as in 1d12h"
		}
		rest = rest[len(number):]
		unit := rest[:len(rest)-len(strings.TrimLeftFunc(rest, unicode.IsLetter))]
		rest = rest[len(unit):]
		i := next
		for i < len(durationUnits) && durationUnits[i].name != unit {
			i++
		}
		if i == len(durationUnits) {
			return 0, "write whole numbers with the units d, h, m, s and ms, larger units first, each once"
		}
		next = i + 1
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n > int64((1<<63-1-total)/durationUnits[i].unit) {
			return 0, "it is too long"
		}
		total += time.Duration(n) * durationUnits[i].unit
	}
	return total, ""
}

// FormatDuration writes a duration of whole milliseconds the way that Duration reads it.
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	for _, u := range durationUnits {
		if n := d / u.unit; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			d -= n * u.unit
		}
	}
	return b.String()
}
