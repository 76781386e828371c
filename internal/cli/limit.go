package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

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

// windowOf reads what durationText writes, and other durations.
func windowOf(text string) (ms int64, ok bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return int64(n) * 24 * 3600_000, err == nil
	}
	d, err := time.ParseDuration(text)
	return d.Milliseconds(), err == nil
}

// whyText says more about a refusal, or nothing.
func whyText(r *kujiv1.Result) string {
	parts := each(r.GetLacks(), func(l *kujiv1.Lack) string {
		return fmt.Sprintf("%s: has %d, needs %d", l.GetItem(), l.GetHave(), l.GetNeed())
	})
	if l := r.GetLimit(); l != nil {
		more := when(l.GetResetsUnixMs() != 0, ", more from "+timeText(l.GetResetsUnixMs()))
		parts = slices.Insert(parts, 0, fmt.Sprintf("%s, %d left%s", limitText(l), l.GetLeft(), more))
	}
	if h := r.GetHold(); r.GetStatus() == kujiv1.Status_STATUS_HOLD_ENDED {
		parts = append(parts, contract.Word(h.GetState())+" at "+timeText(h.GetEndedUnixMs())+when(h.GetBy() != "", " by request "+h.GetBy()))
	}
	return when(len(parts) > 0, " ("+strings.Join(parts, "; ")+")")
}

// printLimits writes where a player stands in limits, or in free draws.
func printLimits(w io.Writer, what string, limits []*kujiv1.Limit) {
	if len(limits) == 0 {
		return
	}
	rows(w, "\nPOOL\t"+what+"\tLEFT\tMORE FROM", limits, func(l *kujiv1.Limit) []any {
		return []any{l.GetPool(), limitText(l), l.GetLeft(), choose(l.GetResetsUnixMs() != 0, timeText(l.GetResetsUnixMs()), "-")}
	})
}

func limitCommand(a *app) *cobra.Command {
	req := &kujiv1.SetLimitRequest{}
	set := &cobra.Command{Use: "set PLAYER POOL LIMIT USED --reason TEXT", Short: "Set how many draws a player has used of a limit"}
	return group("limit", "Set what a player has used of a limit", write(a, set, req, (*api).SetLimit, func() error {
		text := set.Flags().Arg(2)
		if window, ok := windowOf(text); ok {
			req.Per, req.WindowMs = kujiv1.LimitPeriod_LIMIT_PERIOD_WINDOW, window
		} else if per, err := contract.Value(req.Per.Descriptor(), text); err == nil {
			req.Per = kujiv1.LimitPeriod(per)
		} else {
			return usagef("argument %q: expected forever, day, week, month, or the length of a window, such as 36h", text)
		}
		if set.Flag("reason").Value.String() == "" {
			return usagef("missing flag --reason: why the limit is set")
		}
		return nil
	}))
}
