package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// limit is a limit of a pool, or where a player stands in one.
type limit interface {
	GetPer() kujiv1.LimitPeriod
	GetWindowMs() int64
	GetDraws() uint64
}

func limitText(l limit) string {
	switch l.GetPer() {
	case kujiv1.LimitPeriod_LIMIT_PERIOD_FOREVER:
		return fmt.Sprintf("%d in all", l.GetDraws())
	case kujiv1.LimitPeriod_LIMIT_PERIOD_WINDOW:
		return fmt.Sprintf("%d in %s", l.GetDraws(), durationText(l.GetWindowMs()))
	}
	return fmt.Sprintf("%d a %s", l.GetDraws(), contract.Word(l.GetPer()))
}

// durationText writes milliseconds in the largest unit that divides them.
func durationText(ms int64) string {
	for _, unit := range []struct {
		ms   int64
		name string
	}{{24 * 3600_000, "d"}, {3600_000, "h"}, {60_000, "m"}, {1000, "s"}} {
		if ms%unit.ms == 0 {
			return strconv.FormatInt(ms/unit.ms, 10) + unit.name
		}
	}
	return strconv.FormatInt(ms, 10) + "ms"
}

// whyText says more about a refusal, or nothing.
func whyText(r *kujiv1.Result) string {
	var parts []string
	if l := r.GetLimit(); l != nil {
		text := fmt.Sprintf("%s, %d left", limitText(l), l.GetLeft())
		if at := l.GetResetsUnixMs(); at != 0 {
			text += ", more from " + timeText(at)
		}
		parts = append(parts, text)
	}
	for _, l := range r.GetLacks() {
		parts = append(parts, fmt.Sprintf("%s: has %d, needs %d", l.GetItem(), l.GetHave(), l.GetNeed()))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// printLimits writes where a player stands in limits, or in free draws.
func printLimits(w io.Writer, what string, limits []*kujiv1.Limit) {
	if len(limits) == 0 {
		return
	}
	rows(w, "\nPOOL\t"+what+"\tLEFT\tMORE FROM", limits, func(l *kujiv1.Limit) []any {
		more := "-"
		if at := l.GetResetsUnixMs(); at != 0 {
			more = timeText(at)
		}
		return []any{l.GetPool(), limitText(l), l.GetLeft(), more}
	})
}
