package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func timeText(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func itemsText(stacks []*kujiv1.Stack) string {
	return cmp.Or(strings.Join(each(stacks, func(s *kujiv1.Stack) string { return fmt.Sprintf("%s=%d", s.GetItem(), s.GetQuantity()) }), " "), "nothing")
}

// total adds up what outcomes gave.
func total(outcomes []*kujiv1.Outcome) (all []*kujiv1.Stack) {
	at := map[string]*kujiv1.Stack{}
	for _, o := range outcomes {
		for _, s := range o.GetItems() {
			if at[s.GetItem()] == nil {
				at[s.GetItem()] = &kujiv1.Stack{Item: s.GetItem()}
				all = append(all, at[s.GetItem()])
			}
			at[s.GetItem()].Quantity += s.GetQuantity()
		}
	}
	return all
}

// drawsIn returns how many draws gave these outcomes, as far as they tell.
func drawsIn(outcomes []*kujiv1.Outcome) int {
	if len(outcomes) == 0 {
		return 0
	}
	return int(outcomes[len(outcomes)-1].GetDraw()) + 1
}

// finish writes the result of a request for so many draws, and turns a refusal into the error to exit with.
func (a *app) finish(id string, draws int, resp answer) error {
	r := resp.GetResult()
	if err := a.print(plain{resp, id}, func(w io.Writer) { printResult(w, id, draws, r) }); err != nil {
		return err
	}
	if r.GetStatus() == kujiv1.Status_STATUS_OK {
		return nil
	}
	why := fmt.Sprintf(cmp.Or(refusals[r.GetStatus()], "subject %s"), r.GetSubject()) + whyText(r)
	return refusedError{fmt.Sprintf("%s: %s. This answer is final for request id %s", contract.Word(r.GetStatus()), why, id)}
}

func printResult(w io.Writer, id string, draws int, r *kujiv1.Result) {
	fprintf(w, "request\t%s\n", id)
	fprintf(w, "status\t%s%s\n", contract.Word(r.GetStatus()), when(r.GetReplayed(), ", answered before"))
	fprintf(w, "position\t%d\n", r.GetReceipt().GetPosition())
	if r.GetRedeemed() != "" {
		fprintf(w, "redeemed\t%s\n", r.GetRedeemed())
	}
	if len(r.GetPaid()) > 0 {
		fprintf(w, "paid\t%s\n", itemsText(r.GetPaid()))
	}
	if r.GetStatus() == kujiv1.Status_STATUS_OK {
		if r.GetHold() != nil && len(r.GetOutcomes()) == 0 {
			draws = 0 // they are made when it is confirmed
		}
		printOutcomes(w, draws, r.GetOutcomes())
	}
	if len(r.GetCollected()) > 0 {
		fprintf(w, "collected\t%s\n", itemsText(r.GetCollected()))
	}
	printRound(w, r.GetRound())
	printHold(w, r)
	printClaims(w, r.GetClaims())
	printBeyond(w, r.GetBeyond())
	for i, m := range r.GetMembers() {
		fprintf(w, "member %d\t%s\n", i+1, contract.Word(m.GetStatus()))
		printOutcomes(w, drawsIn(m.GetOutcomes()), m.GetOutcomes())
		printGiven(w, m.GetGiven())
		printClaims(w, m.GetClaims())
		printBeyond(w, m.GetBeyond())
	}
	if len(r.GetOutcomes()) > 1 {
		fprintf(w, "total\t%s\n", itemsText(total(r.GetOutcomes())))
	}
}

// printOutcomes writes a line for each outcome. Where a draw has several, or none, it says which draw.
func printOutcomes(w io.Writer, draws int, outcomes []*kujiv1.Outcome) {
	regular := len(outcomes) == draws
	for i, o := range outcomes {
		regular = regular && int(o.GetDraw()) == i
	}
	for draw, next := 0, 0; draw < draws; draw++ {
		name := "drawn"
		if !regular {
			name = fmt.Sprintf("draw %d", draw+1)
		}
		if next == len(outcomes) || int(outcomes[next].GetDraw()) != draw {
			fprintf(w, "%s\tnothing\n", name)
		}
		for ; next < len(outcomes) && int(outcomes[next].GetDraw()) == draw; next++ {
			fprintf(w, "%s\t%s\t%s\n", name, outcomes[next].GetEntry(), gaveText(outcomes[next]))
			name = ""
		}
	}
}

// gaveText says what an outcome gave, and through which pools.
func gaveText(o *kujiv1.Outcome) string {
	parts := each(o.GetCodes(), func(c *kujiv1.RewardCode) string { return fmt.Sprintf("code %s of %s", c.GetCode(), c.GetList()) })
	if len(parts) == 0 || len(o.GetItems()) > 0 {
		parts = slices.Insert(parts, 0, itemsText(o.GetItems()))
	}
	return strings.Join(parts, " ") + when(len(o.GetVia()) > 0, " via "+strings.Join(o.GetVia(), ", "))
}

// refusals says in words why the state refused a command; %s is the subject.
var refusals = map[kujiv1.Status]string{
	kujiv1.Status_STATUS_SOLD_OUT:           "pool %s has less in stock than was asked for",
	kujiv1.Status_STATUS_LIMIT_REACHED:      "the player has reached a limit of pool %s",
	kujiv1.Status_STATUS_INSUFFICIENT_ITEMS: "the player holds too few of %s",
	kujiv1.Status_STATUS_NOT_STARTED:        "pool %s has not started yet",
	kujiv1.Status_STATUS_ENDED:              "pool %s has ended",
	kujiv1.Status_STATUS_COUNT_TOO_LARGE:    "pool %s allows fewer draws in one request",
	kujiv1.Status_STATUS_BALANCE_OVERFLOW:   "the balance of %s would pass 2^53-1",
	kujiv1.Status_STATUS_NOT_ELIGIBLE:       "the player does not meet the condition of pool %s",
	kujiv1.Status_STATUS_PRICE_NOT_OFFERED:  "the pool has no price in %s",
	kujiv1.Status_STATUS_UNKNOWN_CODE:       "there is no such code%s; it counts as a guess",
	kujiv1.Status_STATUS_CODE_EXPIRED:       "the deadline of the codes of %s has passed",
	kujiv1.Status_STATUS_CODE_USED_UP:       "others have used this code of %s as often as it can be",
	kujiv1.Status_STATUS_CODE_REDEEMED:      "the player has used this code of %s before",
	kujiv1.Status_STATUS_TOO_MANY_GUESSES:   "the player has sent too many codes that do not exist%s",
	kujiv1.Status_STATUS_CODE_REQUIRED:      "only codes pay for draws from pool %s: see kuji redeem",
	kujiv1.Status_STATUS_NOT_REACHED:        "the player has not reached the next tier of quest %s, or does not meet its condition",
	kujiv1.Status_STATUS_ALREADY_CLAIMED:    "the player has claimed all of quest %s",
	kujiv1.Status_STATUS_REWARD_UNAVAILABLE: "what quest %s could give is not in stock",
	kujiv1.Status_STATUS_TOO_MANY_LOTS:      "the player's units of %s would go at more than 100 different times",
	kujiv1.Status_STATUS_MOST_REACHED:       "the player would hold more than the most of %s",
	kujiv1.Status_STATUS_MAILBOX_FULL:       "the player's mailbox has no room for %s",
	kujiv1.Status_STATUS_NOTHING_TO_COLLECT: "nothing in the player's mailbox fits%s",
	kujiv1.Status_STATUS_UNKNOWN_ROUND:      "there is no such round, or none of this name is open%s",
	kujiv1.Status_STATUS_ROUND_CLOSED:       "the round is not open, or for a reroll, its time is over%s",
	kujiv1.Status_STATUS_ALREADY_JOINED:     "the player has joined the round%s",
	kujiv1.Status_STATUS_ROUND_FULL:         "the round has as many entrants as it takes%s",
	kujiv1.Status_STATUS_WRONG_STAKE:        "the round takes other stakes: see the catalog, and what the first entrant has staked%s",
	kujiv1.Status_STATUS_ALREADY_OPEN:       "a round of this name is open, and the catalog allows one%s",
	kujiv1.Status_STATUS_TOO_MANY_ROUNDS:    "the player is in 100 rounds, or 10,000 are open in the realm%s",
	kujiv1.Status_STATUS_NOBODY_LEFT:        "no more winners can be drawn%s",
	kujiv1.Status_STATUS_UNKNOWN_HOLD:       "nothing is held with this request id, or it ended more than a day ago%s",
	kujiv1.Status_STATUS_HOLD_ENDED:         "the hold has ended before%s",
	kujiv1.Status_STATUS_TOO_MANY_HOLDS:     "a player has something in 100 holds, or 1,000,000 are open in the realm%s",
	kujiv1.Status_STATUS_UNKNOWN_REQUEST:    "the request id is not remembered, so what it did cannot be reversed%s",
	kujiv1.Status_STATUS_NOT_REVERSIBLE:     "the request was no grant and no draw, or changed nothing%s",
	kujiv1.Status_STATUS_ALREADY_REVERSED:   "the request was reversed before%s",
	kujiv1.Status_STATUS_BLOCKED:            "a player of the request is blocked%s",
	kujiv1.Status_STATUS_UNKNOWN_PLAYER:     "the realm has never seen the player%s",
	kujiv1.Status_STATUS_ALREADY_LINKED:     "the name is another name of a player already%s",
	kujiv1.Status_STATUS_UNKNOWN_LINK_CODE:  "there is no such link code, or its time is over; the guess was counted%s",
	kujiv1.Status_STATUS_NOT_LINKED:         "the name is no other name of anybody, or a player who was merged, which stays%s",
	kujiv1.Status_STATUS_MERGE_NEEDED:       "the name is a player who has something; a merge makes them one%s",
	kujiv1.Status_STATUS_TOO_MANY_ALIASES:   "the player would have more than 100 other names%s",
	kujiv1.Status_STATUS_LINK_CODE_TAKEN:    "another player has this link code: take another one%s",
	kujiv1.Status_STATUS_FORGOTTEN:          "the request was carried out, and a player of it was forgotten since%s",
	kujiv1.Status_STATUS_ABORTED:            "another member failed%s",
}
