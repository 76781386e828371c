package cli

import (
	"fmt"
	"io"
	"strings"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// standingJSON is a limit of a pool, and where a player stands in it.
type standingJSON struct {
	Pool string `json:"pool,omitempty"` // where several pools can be meant
	limitJSON
	Left   uint64 `json:"left"`             // draws
	Resets string `json:"resets,omitempty"` // when more are left, at the soonest; absent: never, or all are left
}

// lackJSON is an item of which a player had too few.
type lackJSON struct {
	Item string `json:"item"`
	Have uint64 `json:"have"`
	Need uint64 `json:"need"`
}

func newStandingJSON(l *kujiv1.Limit) standingJSON {
	out := standingJSON{Pool: l.GetPool(), Left: l.GetLeft(),
		limitJSON: newLimitJSON(&kujiv1.PlayerLimit{Per: l.GetPer(), WindowMs: l.GetWindowMs(), Draws: l.GetDraws()})}
	if l.GetResetsUnixMs() != 0 {
		out.Resets = timeText(l.GetResetsUnixMs())
	}
	return out
}

func newLacksJSON(lacks []*kujiv1.Lack) (out []lackJSON) {
	for _, l := range lacks {
		out = append(out, lackJSON{l.GetItem(), l.GetHave(), l.GetNeed()})
	}
	return out
}

// whyText says more about a refusal, or nothing.
func whyText(r *resultJSON) string {
	var parts []string
	if l := r.Limit; l != nil {
		text := fmt.Sprintf("%s, %d left", l.text(), l.Left)
		if l.Resets != "" {
			text += ", more from " + l.Resets
		}
		parts = append(parts, text)
	}
	for _, l := range r.Lacks {
		parts = append(parts, fmt.Sprintf("%s: has %d, needs %d", l.Item, l.Have, l.Need))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// printLimits writes where a player stands in limits, or in free draws.
func printLimits(w io.Writer, what string, limits []standingJSON) {
	if len(limits) == 0 {
		return
	}
	fprintf(w, "\nPOOL\t%s\tLEFT\tMORE FROM\n", what)
	for _, l := range limits {
		more := l.Resets
		if more == "" {
			more = "-"
		}
		fprintf(w, "%s\t%s\t%d\t%s\n", l.Pool, l.text(), l.Left, more)
	}
}
