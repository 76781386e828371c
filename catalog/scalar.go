package catalog

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kuji-dev/kuji/internal/document"
)

// The texts of numbers, durations and instants are read as they stand in the source. What YAML takes for a
// number (1_000, 0x10, 010, 1e3) depends on its version. No number passes through a float.

// maxDigits is the most digits after a decimal's point: 10^18 is the largest power of ten below 2^63.
const maxDigits = 18

// decimal is mantissa / 10^digits, with the smallest digits possible.
type decimal struct {
	mantissa uint64
	digits   uint8
}

// parseDecimal reads [0-9]+(.[0-9]+)? without leading zeros, exactly.
func parseDecimal(s string) (decimal, string) {
	if wrong := document.NumberShape(s, true); wrong != "" {
		return decimal{}, wrong
	}
	whole, fraction, _ := strings.Cut(s, ".")
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > maxDigits {
		return decimal{}, fmt.Sprintf("it has %d digits after the point", len(fraction))
	}
	mantissa, err := strconv.ParseUint(whole+fraction, 10, 64)
	if err != nil || mantissa > MaxWeightSum {
		return decimal{}, fmt.Sprintf("its digits, taken as one whole number, are above %d", uint64(MaxWeightSum))
	}
	return decimal{mantissa, uint8(len(fraction))}, ""
}

// scaleTo returns d × 10^digits, with digits at least d.digits; false: it does not fit in 63 bits.
func (d decimal) scaleTo(digits uint8) (uint64, bool) {
	high, low := bits.Mul64(d.mantissa, powerOfTen(digits-d.digits))
	return low, high == 0 && low <= MaxWeightSum
}

// above tells whether d is larger than a whole number.
func (d decimal) above(n uint64) bool {
	high, low := bits.Mul64(n, powerOfTen(d.digits))
	return high == 0 && d.mantissa > low
}

// unscaled is v / scale, where scale is a power of ten.
func unscaled(v, scale uint64) decimal {
	d := decimal{mantissa: v}
	for ; scale > 1; scale /= 10 {
		d.digits++
	}
	for ; d.digits > 0 && d.mantissa%10 == 0; d.digits-- {
		d.mantissa /= 10
	}
	return d
}

// String writes the number as parseDecimal reads it.
func (d decimal) String() string {
	s := strconv.FormatUint(d.mantissa, 10)
	if d.digits == 0 {
		return s
	}
	if short := int(d.digits) + 1 - len(s); short > 0 {
		s = strings.Repeat("0", short) + s
	}
	point := len(s) - int(d.digits)
	return s[:point] + "." + s[point:]
}

// powerOfTen returns 10^n for n up to 18.
func powerOfTen(n uint8) uint64 {
	p := uint64(1)
	for range n {
		p *= 10
	}
	return p
}

// powerUpTo reports whether a number is 10^n, with n at most most.
func powerUpTo(v uint64, most uint8) bool {
	p := uint64(1)
	for ; p < v && most > 0; most-- {
		p *= 10
	}
	return p == v
}

// durationPattern is what document.Duration reads, if it is not empty, for the JSON Schema.
const durationPattern = `^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$`

// instantPattern is the shape that parseInstant reads, for the JSON Schema.
const instantPattern = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,3})?(Z|[+-][0-9]{2}:[0-9]{2})$`

// parseInstant reads RFC 3339 with at most three digits of a second, and returns Unix milliseconds.
func parseInstant(s string) (int64, string) {
	const day = len("2026-04-01")
	switch {
	case len(s) == day && strings.Count(s, "-") == 2:
		return 0, "write the time of day and the zone too, as in " + s + "T00:00:00Z"
	case len(s) < day+len("T00:00:00Z") || s[day] != 'T' || strings.Contains(s, ","):
		return 0, "write it as in 2026-04-01T09:00:00Z or 2026-04-01T09:00:00+09:00"
	}
	t, err := time.Parse(time.RFC3339, s)
	switch {
	case err != nil:
		return 0, "there is no such date, time or zone; write it as in 2026-04-01T09:00:00Z"
	case t.Nanosecond()%int(time.Millisecond) != 0 || fractionDigits(s) > 3:
		return 0, "it is finer than a millisecond"
	}
	return t.UnixMilli(), ""
}

func fractionDigits(s string) int {
	_, fraction, _ := strings.Cut(s, ".")
	return len(fraction) - len(strings.TrimLeft(fraction, "0123456789"))
}

// textProblem says what keeps s from being a display name, or nothing.
func textProblem(s string) string {
	switch {
	case s == "":
		return "" // a name may be left out
	case len(s) > MaxName:
		return fmt.Sprintf("it has %d bytes", len(s))
	case !utf8.ValidString(s):
		return "it is not UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "it has control characters or line breaks"
	}
	return ""
}
