package cli

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// The objects that --json writes. Their fields are part of the interface: they
// are added to, never renamed. Quantities are below 2^53 and therefore numbers.

type resultJSON struct {
	RequestID string        `json:"request_id,omitempty"`
	Status    string        `json:"status"` // "ok", "sold_out", …
	Subject   string        `json:"subject,omitempty"`
	Limit     *standingJSON `json:"limit,omitempty"`
	Lacks     []lackJSON    `json:"lacks,omitempty"`
	Replayed  bool          `json:"replayed"`
	Outcomes  []outcomeJSON `json:"outcomes,omitempty"`
	Total     []stackJSON   `json:"total,omitempty"` // what all outcomes gave together
	Paid      []stackJSON   `json:"paid,omitempty"`
	Redeemed  string        `json:"redeemed,omitempty"` // the list of the code that was used
	Receipt   *receiptJSON  `json:"receipt,omitempty"`
	Members   []resultJSON  `json:"members,omitempty"` // of an atomic group
}

type outcomeJSON struct {
	Entry string      `json:"entry"`
	Draw  uint32      `json:"draw"` // which of the request's draws took it, from 0
	Items []stackJSON `json:"items"`
	Via   []string    `json:"via,omitempty"`
	Codes []codeJSON  `json:"codes,omitempty"`
}

type codeJSON struct {
	List string `json:"list"`
	Code string `json:"code"`
}

type stackJSON struct {
	Item     string `json:"item"`
	Quantity uint64 `json:"quantity"`
}

type receiptJSON struct {
	Realm          string `json:"realm"`
	Position       uint64 `json:"position"`
	Index          uint32 `json:"index"`
	Time           string `json:"time"` // RFC 3339, UTC, milliseconds
	CatalogVersion uint64 `json:"catalog_version"`
	Epoch          uint64 `json:"epoch"`
	Commitment     string `json:"commitment"` // hexadecimal
}

func newResultJSON(id string, r *kujiv1.Result) resultJSON {
	out := resultJSON{
		RequestID: id,
		Status:    statusName(r.GetStatus()),
		Subject:   r.GetSubject(),
		Replayed:  r.GetReplayed(),
		Redeemed:  r.GetRedeemed(),
		Lacks:     newLacksJSON(r.GetLacks()),
	}
	if l := r.GetLimit(); l != nil {
		s := newStandingJSON(l)
		out.Limit = &s
	}
	for _, o := range r.GetOutcomes() {
		one := outcomeJSON{Entry: o.GetEntry(), Draw: o.GetDraw(), Items: newStacksJSON(o.GetItems()), Via: o.GetVia()}
		for _, c := range o.GetCodes() {
			one.Codes = append(one.Codes, codeJSON{c.GetList(), c.GetCode()})
		}
		out.Outcomes = append(out.Outcomes, one)
	}
	for _, m := range r.GetMembers() {
		out.Members = append(out.Members, newResultJSON("", m))
	}
	out.Total = total(out.Outcomes)
	if len(r.GetPaid()) > 0 {
		out.Paid = newStacksJSON(r.GetPaid())
	}
	if rc := r.GetReceipt(); rc != nil {
		out.Receipt = &receiptJSON{
			Realm: rc.GetRealm(), Position: rc.GetPosition(), Index: rc.GetIndex(), Time: timeText(rc.GetTimeUnixMs()),
			CatalogVersion: rc.GetCatalogVersion(), Epoch: rc.GetEpoch(), Commitment: hex.EncodeToString(rc.GetCommitment()),
		}
	}
	return out
}

// total adds up what outcomes gave.
func total(outcomes []outcomeJSON) (all []stackJSON) {
	at := map[string]int{}
	for _, o := range outcomes {
		for _, s := range o.Items {
			if i, ok := at[s.Item]; ok {
				all[i].Quantity += s.Quantity
				continue
			}
			at[s.Item] = len(all)
			all = append(all, s)
		}
	}
	return all
}

// newStacksJSON never returns nil: an empty list is written as [].
func newStacksJSON(stacks []*kujiv1.Stack) []stackJSON {
	out := make([]stackJSON, 0, len(stacks))
	for _, s := range stacks {
		out = append(out, stackJSON{s.GetItem(), s.GetQuantity()})
	}
	return out
}

func statusName(s kujiv1.Status) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STATUS_"))
}

func timeText(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func itemsText(stacks []stackJSON) string {
	if len(stacks) == 0 {
		return "nothing"
	}
	parts := make([]string, len(stacks))
	for i, s := range stacks {
		parts[i] = fmt.Sprintf("%s=%d", s.Item, s.Quantity)
	}
	return strings.Join(parts, " ")
}

// finish writes the result of a write, refused by the state or not, and turns
// a refusal into the error that ends the process with its exit code. draws is
// how many draws the request asked for.
func (a *app) finish(id string, draws int, result *kujiv1.Result, err error) error {
	if err != nil {
		return err
	}
	out := newResultJSON(id, result)
	if err := a.print(out, func(w io.Writer) { printResult(w, draws, out) }); err != nil {
		return err
	}
	if result.GetStatus() != kujiv1.Status_STATUS_OK {
		return refusedError{refusal(out)}
	}
	return nil
}

func printResult(w io.Writer, draws int, r resultJSON) {
	again := ""
	if r.Replayed {
		again = ", answered before"
	}
	position := uint64(0)
	if r.Receipt != nil {
		position = r.Receipt.Position
	}
	fprintf(w, "request\t%s\n", r.RequestID)
	fprintf(w, "status\t%s%s\n", r.Status, again)
	fprintf(w, "position\t%d\n", position)
	if r.Redeemed != "" {
		fprintf(w, "redeemed\t%s\n", r.Redeemed)
	}
	if len(r.Paid) > 0 {
		fprintf(w, "paid\t%s\n", itemsText(r.Paid))
	}
	if r.Status == "ok" {
		printOutcomes(w, draws, r.Outcomes)
	}
	printMembers(w, r.Members)
	if len(r.Outcomes) > 1 {
		fprintf(w, "total\t%s\n", itemsText(r.Total))
	}
}

// printOutcomes writes a line for each outcome. Where a draw has several, or
// none, it says which draw.
func printOutcomes(w io.Writer, draws int, outcomes []outcomeJSON) {
	regular := len(outcomes) == draws
	for i, o := range outcomes {
		regular = regular && int(o.Draw) == i
	}
	line := func(name string, o *outcomeJSON) {
		via := ""
		if len(o.Via) > 0 {
			via = " via " + strings.Join(o.Via, ", ")
		}
		gave := itemsText(o.Items)
		if len(o.Codes) > 0 {
			gave = strings.TrimPrefix(gave, "nothing")
		}
		for _, c := range o.Codes {
			gave = strings.TrimSpace(gave + fmt.Sprintf(" code %s of %s", c.Code, c.List))
		}
		fprintf(w, "%s\t%s\t%s%s\n", name, o.Entry, gave, via)
	}
	for draw, next := 0, 0; draw < draws; draw++ {
		name := "drawn"
		if !regular {
			name = fmt.Sprintf("draw %d", draw+1)
		}
		if next == len(outcomes) || int(outcomes[next].Draw) != draw {
			fprintf(w, "%s\tnothing\n", name)
		}
		for ; next < len(outcomes) && int(outcomes[next].Draw) == draw; next++ {
			line(name, &outcomes[next])
			name = ""
		}
	}
}

// refusals says in words why the state refused a command; %s is the subject.
var refusals = map[string]string{
	"sold_out":           "pool %s has less in stock than was asked for",
	"limit_reached":      "the player has reached a limit of pool %s",
	"insufficient_items": "the player holds too few of %s",
	"not_started":        "pool %s has not started yet",
	"ended":              "pool %s has ended",
	"count_too_large":    "pool %s allows fewer draws in one request",
	"balance_overflow":   "the balance of %s would pass 2^53-1",
	"not_eligible":       "the player does not meet the condition of pool %s",
	"price_not_offered":  "the pool has no price in %s",
	"unknown_code":       "there is no such code%s; it counts as a guess",
	"code_expired":       "the deadline of the codes of %s has passed",
	"code_used_up":       "others have used this code of %s as often as it can be",
	"code_redeemed":      "the player has used this code of %s before",
	"too_many_guesses":   "the player has sent too many codes that do not exist%s",
	"code_required":      "only codes pay for draws from pool %s: see kuji redeem",
	"aborted":            "another member of the group failed%s",
}

func refusal(r resultJSON) string {
	words, ok := refusals[r.Status]
	if !ok {
		words = "subject %s"
	}
	return fmt.Sprintf("%s: %s%s. This answer is final for request id %s", r.Status, fmt.Sprintf(words, r.Subject), whyText(&r), r.RequestID)
}
