package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// reads answers reads of a realm's state.
type reads struct{}

func (reads) GetPlayer(ctx context.Context, req *kujiv1.GetPlayerRequest) (*kujiv1.GetPlayerResponse, error) {
	v, err := realmOf(ctx).Player(ctx, req.GetPlayer())
	if err != nil {
		return nil, err
	}
	show, err := shower(ctx, req)
	if err != nil {
		return nil, err
	}
	out := &kujiv1.GetPlayerResponse{Player: &kujiv1.Player{
		Id: v.ID, Items: message.Stacks(v.Items), Position: v.Position,
		Pity: message.Each(v.Tracks, func(t *kuji.TrackView) *kujiv1.PlayerTrack {
			return &kujiv1.PlayerTrack{Track: t.Name, Draws: t.Draws, CertainIn: t.CertainIn, Pool: t.Pool, Unless: t.Unless}
		}),
		Limits: message.Each(v.Limits, poolLimit), Free: message.Each(v.Free, poolLimit), Held: message.Stacks(v.Held),
		Aliases: message.Each(v.Aliases, message.Alias), Blocked: v.Blocked,
		Lots: message.Each(v.Lots, func(l *kuji.Lot) *kujiv1.Lot {
			return &kujiv1.Lot{Item: l.Item, Quantity: l.Quantity, UntilUnixMs: l.Until}
		}),
		Mail: message.Each(v.Mail, func(l *kuji.Letter) *kujiv1.Lot {
			return &kujiv1.Lot{Item: l.Item, Quantity: l.Quantity, UntilUnixMs: l.Until}
		}),
		Counters: message.Each(v.Counters, message.PlayerCounter), Quests: message.Each(v.Quests, message.PlayerQuest),
	}}
	show.Counters(out.GetPlayer().GetCounters())
	out.Items, err = namesIn(ctx, req, show, out)
	return out, err
}

func (reads) ListRanks(ctx context.Context, req *kujiv1.ListRanksRequest) (*kujiv1.ListRanksResponse, error) {
	v, err := realmOf(ctx).Ranks(ctx, kuji.RanksQuery{
		Counter: req.GetCounter(), Ended: req.GetEnded(), Player: req.GetAround(), From: req.GetRankFrom(), Most: int(req.GetRankLimit()),
	})
	if e, ok := errors.AsType[*kuji.Error](err); ok {
		as := *e
		as.Field = cmp.Or(map[string]string{"player": "around", "from": "rank_from", "most": "rank_limit"}[e.Field], e.Field)
		return nil, &as
	}
	if err != nil {
		return nil, err
	}
	return &kujiv1.ListRanksResponse{
		RankCount: v.Of, EndsUnixMs: v.Ends, Position: v.Position,
		Ranks: message.Each(v.Ranks, func(r *kuji.RankView) *kujiv1.Rank {
			return &kujiv1.Rank{Rank: r.Rank, Player: r.Player, Value: r.Value}
		}),
	}, nil
}

func (reads) GetRound(ctx context.Context, req *kujiv1.GetRoundRequest) (*kujiv1.GetRoundResponse, error) {
	most, err := pageLimit("entrant_limit", req.GetEntrantLimit(), message.DefaultEntrants, kuji.MaxEntrants)
	if err != nil {
		return nil, err
	}
	v, err := kuji.RoundsOf(realmOf(ctx)).Page(ctx, req.GetNumber(), req.GetEntrantOffset(), most)
	if err != nil {
		return nil, err
	}
	return &kujiv1.GetRoundResponse{Round: message.Round(&v), Entrants: message.Each(v.Joined, message.Entrant)}, nil
}

func (reads) ListRounds(ctx context.Context, req *kujiv1.ListRoundsRequest) (*kujiv1.ListRoundsResponse, error) {
	from, to, err := page("round_limit", req.GetRoundOffset(), req.GetRoundLimit(), math.MaxInt)
	if err != nil {
		return nil, err
	}
	some, of, err := kuji.RoundsOf(realmOf(ctx)).OpenPage(ctx, from, to-from)
	if err != nil {
		return nil, err
	}
	return &kujiv1.ListRoundsResponse{Rounds: message.Each(some, message.Round), RoundCount: uint32(of)}, nil
}

func (reads) GetHold(ctx context.Context, req *kujiv1.GetHoldRequest) (*kujiv1.GetHoldResponse, error) {
	v, err := kuji.HoldsOf(realmOf(ctx)).Get(ctx, req.GetHold())
	if err != nil {
		return nil, err
	}
	return &kujiv1.GetHoldResponse{Hold: message.Hold(&v)}, nil
}

func (reads) ListHolds(ctx context.Context, req *kujiv1.ListHoldsRequest) (*kujiv1.ListHoldsResponse, error) {
	most, err := pageLimit("limit", req.GetLimit(), message.DefaultHolds, kuji.MaxHolds)
	if err != nil {
		return nil, err
	}
	holds, player := kuji.HoldsOf(realmOf(ctx)), req.GetPlayer()
	var all []kuji.HoldView
	switch {
	case player == "":
		all, err = holds.Open(ctx, req.GetAfterUnixMs(), req.GetAfter())
	case req.GetAfterUnixMs() != 0:
		err = &kuji.Error{Code: kuji.CodeInvalid, Field: "after_unix_ms", Message: "with a player, whose holds stand by their ids"}
	default:
		all, err = holds.Of(ctx, player)
		all = slices.DeleteFunc(all, func(v kuji.HoldView) bool { return v.ID <= req.GetAfter() })
	}
	if err != nil {
		return nil, err
	}
	some, left := message.Holds(all, player, most)
	more := left > 0
	if last := len(all) - 1; player == "" && !more && last >= 0 { // there may be more than are read at once
		rest, err := holds.Open(ctx, all[last].Until, all[last].ID)
		if err != nil {
			return nil, err
		}
		more = len(rest) > 0
	}
	return &kujiv1.ListHoldsResponse{Holds: some, More: more}, nil
}

func poolLimit(l *kuji.PoolLimit) *kujiv1.Limit {
	out := message.Limit(&l.Limit)
	out.Pool = l.Pool
	return out
}

func (reads) ListQuests(ctx context.Context, req *kujiv1.ListQuestsRequest) (*kujiv1.ListQuestsResponse, error) {
	show, err := shower(ctx, req)
	if err != nil {
		return nil, err
	}
	v, err := realmOf(ctx).Goals(ctx, req.GetPlayer())
	if err != nil {
		return nil, err
	}
	from, to, err := page("quest_limit", req.GetQuestOffset(), req.GetQuestLimit(), len(v.Quests))
	if err != nil {
		return nil, err
	}
	out := &kujiv1.ListQuestsResponse{
		Quests: message.Quests(&v, from, to), QuestCount: uint32(len(v.Quests)),
		Counters: message.Each(v.Counters, message.PlayerCounter), Free: message.Each(v.Free, poolLimit),
		CatalogVersion: v.CatalogVersion, Position: v.Position,
	}
	show.Counters(out.GetCounters())
	for i, q := range out.GetQuests() {
		show.Quest(q, &v.Configs[from+i])
	}
	out.Items, err = namesIn(ctx, req, show, out)
	return out, err
}

func (reads) GetPool(ctx context.Context, req *kujiv1.GetPoolRequest) (*kujiv1.GetPoolResponse, error) {
	pools := realmOf(ctx).Pools()
	show, err := shower(ctx, req)
	if err != nil {
		return nil, err
	}
	from, to, invalid := page("entry_limit", req.GetEntryOffset(), req.GetEntryLimit(), math.MaxInt)
	v, err := pools.Page(ctx, req.GetPool(), from, to-from)
	if err := cmp.Or(err, invalid); err != nil {
		return nil, err
	}
	out := &kujiv1.GetPoolResponse{Pool: message.Pool(&v, from)}
	show.Pool(out.GetPool(), &v.Config)
	if req.GetPlayer() != "" {
		limits, err := pools.Limits(ctx, req.GetPool(), req.GetPlayer())
		if err != nil {
			return nil, err
		}
		free, err := pools.Free(ctx, req.GetPool(), req.GetPlayer())
		if err != nil {
			return nil, err
		}
		out.PlayerLimits, out.PlayerFree = message.Each(limits, message.Limit), message.Limit(free)
	}
	out.Items, err = namesIn(ctx, req, show, out)
	return out, err
}

func (reads) GetEpoch(ctx context.Context, req *kujiv1.GetEpochRequest) (*kujiv1.GetEpochResponse, error) {
	v, err := kuji.EpochsOf(realmOf(ctx)).Get(ctx, req.GetEpoch())
	if err != nil {
		return nil, err
	}
	out := &kujiv1.Epoch{
		Epoch: v.Number, Position: v.Position, TimeUnixMs: v.Time, Commitment: v.Commitment[:], RevealedPosition: v.Revealed, Current: v.Current,
	}
	if v.Revealed > 0 {
		out.Seed = v.Seed[:]
	}
	return &kujiv1.GetEpochResponse{Epoch: out}, nil
}

// oddsAtOnce is how many odds are computed at a time. Those of one pool can take a second.
const oddsAtOnce = 4

func (reads) GetOdds(ctx context.Context, req *kujiv1.GetOddsRequest) (*kujiv1.GetOddsResponse, error) {
	o, err := realmOf(ctx).Pools().Odds(ctx, req.GetPool(), req.GetPlayer(), int(max(1, req.GetCount())))
	return &kujiv1.GetOddsResponse{Odds: message.Odds(&o)}, err
}

func (reads) GetResult(ctx context.Context, req *kujiv1.GetResultRequest) (*kujiv1.GetResultResponse, error) {
	l, err := realmOf(ctx).Result(ctx, req.GetRequestId())
	if err != nil {
		return nil, err
	}
	out := &kujiv1.GetResultResponse{Seen: kujiv1.Seen(l.Seen), ForgottenBeforeUnixMs: l.Before}
	if l.Seen != kuji.Answered {
		return out, nil
	}
	player := req.GetPlayer()
	if player != "" && player != l.Player {
		return nil, &kuji.Error{Code: kuji.CodeIDReused, Field: "player", Message: fmt.Sprintf("%q was not a request of player %q alone", req.GetRequestId(), player)}
	}
	out.Player, out.Result = l.Player, message.Result(&l.Result)
	if player == "" || !accessOf(ctx).MayRepeat(l.Result.Redeemed != "") { // with that right, the client could get the codes by a repeat
		redact(out.GetResult())
	}
	return out, nil
}

// redact hides the codes in a result.
func redact(res *kujiv1.Result) {
	for _, o := range res.GetOutcomes() {
		redactCodes(o.GetCodes())
	}
	for _, c := range res.GetClaims() {
		redactCodes(c.GetCodes())
	}
	redactCodes(res.GetGiven().GetCodes())
	for _, m := range res.GetMembers() {
		redact(m)
	}
}

func redactCodes(codes []*kujiv1.RewardCode) {
	for _, c := range codes {
		c.Code = kuji.Redacted
	}
}
