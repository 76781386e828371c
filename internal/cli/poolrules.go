package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// poolRulesJSON is what a pool's catalog says about drawing from it.
type poolRulesJSON struct {
	Internal   bool            `json:"internal,omitempty"` // drawn from only through other pools
	Memoryless bool            `json:"memoryless,omitempty"`
	Bundles    []bundleJSON    `json:"bundles,omitempty"`
	Free       *limitJSON      `json:"free,omitempty"`   // draws that cost nothing
	Redeem     []redeemJSON    `json:"redeem,omitempty"` // codes that pay
	Limits     []limitJSON     `json:"limits,omitempty"`
	When       *conditionJSON  `json:"when,omitempty"`
	Rolls      *rollsJSON      `json:"rolls,omitempty"` // absent: one entry a draw
	Pity       []poolTrackJSON `json:"pity,omitempty"`
	Guarantees []guaranteeJSON `json:"guarantees,omitempty"`
	Last       string          `json:"last,omitempty"`   // a reward: see entryJSON
	Refill     uint32          `json:"refill,omitempty"` // times
	Budgets    []budgetJSON    `json:"budgets,omitempty"`
}

// budgetJSON is what is left now of one item of a budget.
type budgetJSON struct {
	Per    string `json:"per"` // "forever", "week", "day" or "hour"
	Share  string `json:"share,omitempty"`
	Item   string `json:"item"`
	Limit  uint64 `json:"limit"`
	Spent  uint64 `json:"spent"`
	Left   uint64 `json:"left"`
	Resets string `json:"resets,omitempty"` // when it is full again; absent: never
}

// momentsJSON is how the winning moments of an entry stand. How many were taken is what was drawn.
type momentsJSON struct {
	Count   uint32       `json:"count"`
	Spread  string       `json:"spread"` // "even", "slots" or "random"
	Weights []timeWeight `json:"weights,omitempty"`
	Missed  string       `json:"missed"`  // "wait" or "pass"
	Come    uint64       `json:"come"`    // those that draws have found, and those that must have come by now
	Waiting uint64       `json:"waiting"` // of these, how many the next draws take
	Next    string       `json:"next,omitempty"`
}

type timeWeight struct {
	When   string `json:"when"`
	Weight uint64 `json:"weight"`
}

type bundleJSON struct {
	Draws uint32      `json:"draws"`
	Price []stackJSON `json:"price"`
}

type limitJSON struct {
	Per    string `json:"per"`                 // "forever", "day", "week" or "window"
	Window int64  `json:"window_ms,omitempty"` // milliseconds
	Draws  uint64 `json:"draws"`
}

// conditionJSON is what must be true of a player. All of it must be.
type conditionJSON struct {
	Holds []stackJSON `json:"holds,omitempty"`
	Lacks []string    `json:"lacks,omitempty"`
	Pity  []trackJSON `json:"pity,omitempty"` // tracks with at least so many draws
}

type rollsJSON struct {
	Min      uint32 `json:"min"`
	Max      uint32 `json:"max"`
	Distinct bool   `json:"distinct,omitempty"`
}

type poolTrackJSON struct {
	Track      string        `json:"track"`
	Of         []string      `json:"of"`
	Certain    uint32        `json:"certain,omitempty"`     // the draw that is certain to hit
	RisingFrom uint32        `json:"rising_from,omitempty"` // the first draw with a higher chance
	RisingBy   []json.Number `json:"rising_by,omitempty"`   // percentage points
	Share      string        `json:"share,omitempty"`
	table      bool
}

type redeemJSON struct {
	List  string `json:"list"`
	Times uint32 `json:"times"` // draws that a code pays for
	Uses  uint64 `json:"uses"`  // players who can use each code
	Until string `json:"until,omitempty"`
}

type guaranteeJSON struct {
	Draws   uint32   `json:"draws"`
	AtLeast uint32   `json:"at_least"`
	Of      []string `json:"of"`
}

// entryRulesJSON is what the catalog says about when an entry can be drawn.
type entryRulesJSON struct {
	Group  string         `json:"group,omitempty"`
	When   *conditionJSON `json:"when,omitempty"`
	Unique bool           `json:"unique,omitempty"`
	Luck   *luckJSON      `json:"luck,omitempty"`
	// Available: a draw can take the entry now, what depends on the player aside.
	Available  bool         `json:"available"`
	OverBudget bool         `json:"over_budget,omitempty"`
	Moments    *momentsJSON `json:"moments,omitempty"`
}

type luckJSON struct {
	Item  string     `json:"item,omitempty"`
	Track string     `json:"pity,omitempty"`
	Steps []luckStep `json:"weights"`
}

type luckStep struct {
	From   uint64      `json:"from"`
	Weight json.Number `json:"weight"`
}

func newPoolRulesJSON(p *kujiv1.Pool) poolRulesJSON {
	out := poolRulesJSON{Internal: p.GetInternal(), Memoryless: p.GetMemoryless(), When: newConditionJSON(p.GetWhen()), Refill: p.GetRefill()}
	for _, b := range p.GetBundles() {
		out.Bundles = append(out.Bundles, bundleJSON{b.GetDraws(), newStacksJSON(b.GetItems())})
	}
	if p.GetFree() != nil {
		free := newLimitJSON(p.GetFree())
		out.Free = &free
	}
	for _, r := range p.GetRedeem() {
		one := redeemJSON{List: r.GetList(), Times: r.GetTimes(), Uses: r.GetUses()}
		if r.GetUntilUnixMs() != 0 {
			one.Until = timeText(r.GetUntilUnixMs())
		}
		out.Redeem = append(out.Redeem, one)
	}
	for _, l := range p.GetLimits() {
		out.Limits = append(out.Limits, newLimitJSON(l))
	}
	if r := p.GetRolls(); r.GetMax() > 1 {
		out.Rolls = &rollsJSON{r.GetMin(), r.GetMax(), r.GetDistinct()}
	}
	for _, t := range p.GetPity() {
		track := poolTrackJSON{t.GetName(), t.GetOf(), t.GetCertain(), t.GetRisingFrom(), nil, t.GetShare(), t.GetRisingTable()}
		for _, by := range t.GetRisingBy() {
			track.RisingBy = append(track.RisingBy, decimalText(by, t.GetRisingScale()))
		}
		out.Pity = append(out.Pity, track)
	}
	for _, g := range p.GetGuarantees() {
		out.Guarantees = append(out.Guarantees, guaranteeJSON{g.GetDraws(), g.GetAtLeast(), g.GetOf()})
	}
	if p.GetLast() != nil {
		out.Last = rewardText(p.GetLast())
	}
	for _, b := range p.GetBudgets() {
		one := budgetJSON{Per: periodText(b.GetPer()), Share: b.GetShare(), Item: b.GetItem(), Limit: b.GetLimit(), Spent: b.GetSpent(), Left: b.GetLeft()}
		if b.GetResetsUnixMs() != 0 {
			one.Resets = timeText(b.GetResetsUnixMs())
		}
		out.Budgets = append(out.Budgets, one)
	}
	return out
}

func periodText(p kujiv1.LimitPeriod) string {
	return strings.ToLower(strings.TrimPrefix(p.String(), "LIMIT_PERIOD_"))
}

func newMomentsJSON(m *kujiv1.Moments) *momentsJSON {
	if m == nil {
		return nil
	}
	out := &momentsJSON{Count: m.GetCount(), Spread: strings.ToLower(strings.TrimPrefix(m.GetSpread().String(), "SPREAD_")), Missed: "wait", Come: m.GetCome(), Waiting: m.GetWaiting()}
	if m.GetPass() {
		out.Missed = "pass"
	}
	for _, w := range m.GetWeights() {
		out.Weights = append(out.Weights, timeWeight{w.GetWhen(), w.GetWeight()})
	}
	if m.GetNextUnixMs() != 0 {
		out.Next = timeText(m.GetNextUnixMs())
	}
	return out
}

func newLimitJSON(l *kujiv1.PlayerLimit) limitJSON {
	return limitJSON{periodText(l.GetPer()), l.GetWindowMs(), l.GetDraws()}
}

func newConditionJSON(c *kujiv1.Condition) *conditionJSON {
	if c == nil {
		return nil
	}
	out := &conditionJSON{Lacks: c.GetLacks()}
	if len(c.GetHolds()) > 0 {
		out.Holds = newStacksJSON(c.GetHolds())
	}
	for _, t := range c.GetPity() {
		out.Pity = append(out.Pity, trackJSON{Track: t.GetTrack(), Draws: t.GetDraws()})
	}
	return out
}

func newEntryRulesJSON(e *kujiv1.Entry, scale uint64) entryRulesJSON {
	out := entryRulesJSON{Group: e.GetGroup(), When: newConditionJSON(e.GetWhen()), Unique: e.GetUnique(),
		Available: e.GetAvailable(), OverBudget: e.GetOverBudget(), Moments: newMomentsJSON(e.GetMoments())}
	if l := e.GetLuck(); l != nil {
		out.Luck = &luckJSON{Item: l.GetItem(), Track: l.GetTrack()}
		for _, s := range l.GetSteps() {
			out.Luck.Steps = append(out.Luck.Steps, luckStep{s.GetFrom(), decimalText(s.GetWeight(), scale)})
		}
	}
	return out
}

// decimal writes n/scale exactly; scale is a power of ten.
func decimalText(n, scale uint64) json.Number {
	scale = max(scale, 1)
	whole := strconv.FormatUint(n/scale, 10)
	if n%scale == 0 {
		return json.Number(whole)
	}
	digits := len(strconv.FormatUint(scale, 10)) - 1
	return json.Number(whole + "." + strings.TrimRight(fmt.Sprintf("%0*d", digits, n%scale), "0"))
}

// print writes a line for each rule.
func (p *poolRulesJSON) print(w io.Writer) {
	row := func(name, format string, args ...any) { fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	if p.Internal {
		row("internal", "drawn from only through other pools")
	}
	if p.Memoryless {
		row("memoryless", "no odds depend on the player")
	}
	for _, b := range p.Bundles {
		row(fmt.Sprintf("%d draws", b.Draws), "%s", itemsText(b.Price))
	}
	if p.Free != nil {
		row("free", "%s", p.Free.text())
	}
	for _, r := range p.Redeem {
		row("redeem", "%s", r.text())
	}
	for _, l := range p.Limits {
		row("limit", "%s", l.text())
	}
	if p.When != nil {
		row("when", "%s", p.When.text())
	}
	if r := p.Rolls; r != nil {
		distinct := ""
		if r.Distinct {
			distinct = ", none twice"
		}
		row("rolls", "%s entries a draw%s", rangeText(uint64(r.Min), uint64(r.Max)), distinct)
	}
	for _, t := range p.Pity {
		row("pity", "%s", t.text())
	}
	for _, g := range p.Guarantees {
		row("guarantee", "%d of %s in %d draws", g.AtLeast, strings.Join(g.Of, ", "), g.Draws)
	}
	if p.Last != "" {
		row("last", "%s", p.Last)
	}
	if p.Refill > 0 {
		row("refill", "%d times", p.Refill)
	}
	for _, b := range p.Budgets {
		row("budget", "%s", b.text())
	}
}

func (b *budgetJSON) text() string {
	text := fmt.Sprintf("%s: %d of %d left", b.Item, b.Left, b.Limit)
	switch {
	case b.Resets != "":
		text += fmt.Sprintf(" this %s, full again at %s", b.Per, b.Resets)
	default:
		text += ", for ever"
	}
	if b.Share != "" {
		text += ", shared as " + b.Share
	}
	return text
}

func (m *momentsJSON) text() string {
	text := fmt.Sprintf("%d of %d moments have come, %d wait", m.Come, m.Count, m.Waiting)
	if m.Next != "" {
		text += ", the next at " + m.Next
	}
	return text
}

func (r *redeemJSON) text() string {
	text := "a code of " + r.List
	if r.Times > 1 {
		text += fmt.Sprintf(", %d draws each", r.Times)
	}
	if r.Uses > 1 {
		text += fmt.Sprintf(", for %d players each", r.Uses)
	}
	if r.Until != "" {
		text += ", until " + r.Until
	}
	return text
}

func (l *limitJSON) text() string {
	switch l.Per {
	case "forever":
		return fmt.Sprintf("%d in all", l.Draws)
	case "window":
		return fmt.Sprintf("%d in %s", l.Draws, durationText(l.Window))
	}
	return fmt.Sprintf("%d a %s", l.Draws, l.Per)
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

func (c *conditionJSON) text() string {
	var parts []string
	if len(c.Holds) > 0 {
		parts = append(parts, "holds "+itemsText(c.Holds))
	}
	if len(c.Lacks) > 0 {
		parts = append(parts, "lacks "+strings.Join(c.Lacks, " "))
	}
	for _, t := range c.Pity {
		parts = append(parts, fmt.Sprintf("pity %s at %d", t.Track, t.Draws))
	}
	return strings.Join(parts, ", ")
}

func (t *poolTrackJSON) text() string {
	text := t.Track
	if len(t.Of) != 1 || t.Of[0] != t.Track {
		text += " (" + strings.Join(t.Of, ", ") + ")"
	}
	text += ":"
	if t.Certain > 0 {
		text += fmt.Sprintf(" certain by draw %d,", t.Certain)
	}
	if t.RisingFrom > 0 {
		by := make([]string, len(t.RisingBy))
		for i, n := range t.RisingBy {
			by[i] = n.String()
		}
		how := "by %s points a draw"
		if t.table {
			how = "by %s points"
		}
		text += fmt.Sprintf(" rising from draw %d "+how+",", t.RisingFrom, strings.Join(by, ", "))
	}
	if t.Share != "" {
		text += " counted as " + t.Share + ","
	}
	if strings.HasSuffix(text, ":") {
		return text + " counted only"
	}
	return strings.TrimSuffix(text, ",")
}

// text returns an entry's rules in words, "" if there are none.
func (e *entryRulesJSON) text() string {
	var parts []string
	if e.Group != "" {
		parts = append(parts, "group "+e.Group)
	}
	if e.Unique {
		parts = append(parts, "unique")
	}
	if e.When != nil {
		parts = append(parts, "when "+e.When.text())
	}
	if l := e.Luck; l != nil {
		by := "item " + l.Item
		if l.Track != "" {
			by = "pity " + l.Track
		}
		steps := make([]string, len(l.Steps))
		for i, s := range l.Steps {
			steps[i] = fmt.Sprintf("%s from %d", s.Weight, s.From)
		}
		parts = append(parts, "luck by "+by+": weight "+strings.Join(steps, ", "))
	}
	if e.Moments != nil {
		parts = append(parts, e.Moments.text())
	}
	if e.OverBudget {
		parts = append(parts, "over budget")
	}
	return strings.Join(parts, "; ")
}
