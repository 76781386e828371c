package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

func claimCommand(a *app) *cobra.Command {
	req := &kujiv1.ClaimRequest{}
	cmd := &cobra.Command{Use: "claim PLAYER QUEST", Short: "Claim what a player has reached in a quest"}
	cmd.Flags().Uint32Var(&req.Tiers, "tiers", 0, "how many tiers, all or none (default: those that are reached)")
	return write(a, cmd, req, (*api).Claim, func() error {
		if cmd.Flags().Changed("tiers") {
			return atLeast("tiers", req.GetTiers(), 1)
		}
		return nil
	})
}

func questsCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "quests PLAYER", Short: "Show the quests, how far a player is in them, and what is left of free draws"}
	return read(a, cmd, &kujiv1.ListQuestsRequest{}, allQuests, printQuestPage)
}

// allQuests reads all pages of quests. What is not a quest is as of the last page.
func allQuests(c *api, ctx context.Context, req *kujiv1.ListQuestsRequest) (*kujiv1.ListQuestsResponse, error) {
	var all []*kujiv1.Quest
	for req.QuestLimit = server.MaxPage; ; {
		page, err := c.ListQuests(ctx, req)
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetQuests()...)
		if req.QuestOffset = uint32(len(all)); len(page.GetQuests()) == 0 || req.GetQuestOffset() >= page.GetQuestCount() {
			page.Quests = all
			return page, nil
		}
	}
}

func printQuestPage(w io.Writer, page *kujiv1.ListQuestsResponse) {
	if len(page.GetQuests()) == 0 {
		fprintf(w, "no quests\n")
	}
	for i, q := range page.GetQuests() {
		p := q.GetPlayer()
		if i > 0 {
			fprintf(w, "\n")
		}
		fprintf(w, "%s\t%s\n", word(q.GetId()), stateText(p))
		for j, t := range q.GetTiers() {
			fprintf(w, "  tier %d\t%s\t%s\t%s\n", j+1, tierState(p, uint32(j)), needsText(t.GetNeeds()), rewardText(t.GetReward()))
		}
	}
	printCounters(w, page.GetCounters())
	printLimits(w, "FREE DRAWS", page.GetFree())
}

// stateText says in words how far a player is in a quest.
func stateText(p *kujiv1.PlayerQuest) string {
	say := choose(p.GetOpen(), "open", "not open")
	if p.GetClaimed() >= p.GetTiers() {
		say = "done"
	}
	return say + when(p.GetResetsUnixMs() != 0, ", again from "+timeText(p.GetResetsUnixMs()))
}

// tierState says how far a player is with a tier, from 0.
func tierState(p *kujiv1.PlayerQuest, tier uint32) string {
	switch {
	case tier < p.GetClaimed():
		return "claimed"
	case tier < p.GetClaimed()+p.GetClaimable():
		return "can be claimed"
	}
	return "-"
}

// needsText says where counters stand, and must stand.
func needsText(needs []*kujiv1.Need) string {
	return cmp.Or(strings.Join(each(needs, func(n *kujiv1.Need) string {
		text := fmt.Sprintf("%s %d/%d", n.GetCounter(), n.GetValue(), n.GetMin())
		return text + when(n.GetMax() != catalog.MaxCount, fmt.Sprintf(" at most %d", n.GetMax()))
	}), ", "), "nothing")
}

// printQuests writes how far a player is in quests.
func printQuests(w io.Writer, quests []*kujiv1.PlayerQuest) {
	if len(quests) == 0 {
		return
	}
	rows(w, "\nQUEST\tCLAIMED\tTO CLAIM\tNEEDS\tRESETS", quests, func(q *kujiv1.PlayerQuest) []any {
		needs := choose(q.GetOpen(), needsText(q.GetNeeds()), "not open")
		if q.GetClaimed()+q.GetClaimable() >= q.GetTiers() {
			needs = "-"
		}
		return []any{q.GetQuest(), fmt.Sprintf("%d of %d", q.GetClaimed(), q.GetTiers()), q.GetClaimable(), needs, resetText(q.GetResetsUnixMs())}
	})
}

// printClaims writes a line for each tier that was claimed, rank that was paid, and winner of a round.
func printClaims(w io.Writer, claims []*kujiv1.Claimed) {
	for _, c := range claims {
		gave := gaveText(&kujiv1.Outcome{Items: c.GetItems(), Via: c.GetVia(), Codes: c.GetCodes()})
		if c.GetPlace() > 0 {
			value := when(c.GetValue() > 0, fmt.Sprintf(" with a value of %d", c.GetValue()))
			fprintf(w, "place %d\t%s%s\t%s\n", c.GetPlace(), word(c.GetPlayer()), value, choose(c.GetMissed(), "the reward was not there or did not fit", gave))
			continue
		}
		if c.GetRank() > 0 {
			fprintf(w, "rank %d\tof %s in %s\t%s\n", c.GetRank(), word(c.GetPlayer()), c.GetCounter(), choose(c.GetMissed(), "the reward was not there or did not fit", gave))
			continue
		}
		fprintf(w, "claimed\t%s tier %d%s\t%s\n", c.GetQuest(), c.GetTier(), when(c.GetPlayer() != "", " of "+word(c.GetPlayer())), gave)
	}
}
