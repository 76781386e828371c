package cli

import (
	"context"
	"errors"
	"math"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/simulate"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// simulationMemory is about how many bytes a simulation by an RPC may take.
const simulationMemory = 512 << 20

// simulator answers Simulate of a server, on one core: the others are for draws.
func simulator(ctx context.Context, c *catalog.Catalog, req *kujiv1.SimulateRequest) (*kujiv1.SimulateResponse, error) {
	config := simulate.Config{
		Pool: req.GetPool(), Players: int(req.GetPlayers()), Draws: int(req.GetDraws()), Count: int(req.GetCount()), Pay: req.GetPay(),
		Seed: req.GetSeed(), Until: req.GetUntil(), Rate: req.GetRate(), Independent: req.GetIndependent(), Cores: 1, Memory: simulationMemory,
		Codes: map[string]int64{},
	}
	for list, n := range req.GetCodes() {
		config.Codes[list] = int64(min(n, math.MaxInt64))
	}
	for _, p := range req.GetProgress() {
		one := simulate.Progress{Event: p.GetEvent(), N: p.GetN(), Per: "day", Keys: int(p.GetKeys())}
		if p.GetPerDraw() {
			one.Per = "draw"
		}
		config.Progress = append(config.Progress, one)
	}
	r, err := simulate.Run(ctx, c, config)
	if bad, ok := errors.AsType[*simulate.ConfigError](err); ok {
		return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: bad.Field, Message: bad.Message}
	}
	if err != nil {
		return nil, err
	}
	return simulatedMessage(r), nil
}

// mapped makes a message of each of some things.
func mapped[T, M any](all []T, message func(*T) M) (out []M) {
	for i := range all {
		out = append(out, message(&all[i]))
	}
	return out
}

func simulatedMessage(r *simulate.Report) *kujiv1.SimulateResponse {
	return &kujiv1.SimulateResponse{
		Requests: r.Requests, Draws: r.Draws, OddsChange: r.OddsChange, NoLongRun: r.NoLongRun,
		Players: uint32(r.Players), DrawsEach: uint32(r.DrawsEach), Count: uint32(r.Count),
		Refused: mapped(r.Refused, func(s *simulate.Refusal) *kujiv1.SimulatedRefusal {
			return &kujiv1.SimulatedRefusal{Status: s.Status, Requests: s.Requests, Stopped: s.Stopped}
		}),
		Paid: mapped(r.Paid, simulatedAmount), Given: mapped(r.Given, simulatedAmount),
		Odds: mapped(r.Odds, func(o *simulate.Odds) *kujiv1.SimulatedOdds {
			return &kujiv1.SimulatedOdds{Pool: o.Pool, Entry: o.Entry, Wanted: o.Wanted, LongRun: o.LongRun, Seen: o.Seen, Low: o.Low, High: o.High, Taken: o.Taken}
		}),
		Costs: simulatedCosts(r.Until), Stock: simulatedStock(r.Stock),
		Codes: mapped(r.Codes, func(c *simulate.Codes) *kujiv1.SimulatedCodes {
			return &kujiv1.SimulatedCodes{List: c.List, Given: c.Given, Of: c.Of, UsedUp: simulatedMoment(c.Gone)}
		}),
		Quests: mapped(r.Quests, func(q *simulate.Quest) *kujiv1.SimulatedQuest {
			return &kujiv1.SimulatedQuest{Quest: q.Quest, Claims: q.Claims, Tiers: q.Tiers, Given: mapped(q.Given, simulatedPrize)}
		}),
		Ranks: mapped(r.Ranks, func(k *simulate.Ranking) *kujiv1.SimulatedRanks {
			return &kujiv1.SimulatedRanks{Counter: k.Counter, PeriodsEnded: k.Ended, RanksPaid: k.Paid, RanksMissed: k.Missed, Given: mapped(k.Given, simulatedPrize)}
		}),
		Grown: mapped(r.Grown, simulatedPrize),
		Beyond: mapped(r.Beyond, func(b *simulate.Beyond) *kujiv1.SimulatedBeyond {
			return &kujiv1.SimulatedBeyond{Item: b.Item, Cut: b.Cut, Mailed: b.Mailed, Collected: b.Collected, Gone: b.Gone}
		}),
	}
}

func simulatedAmount(a *simulate.Amount) *kujiv1.SimulatedAmount {
	return &kujiv1.SimulatedAmount{Item: a.Item, Total: a.Total, Each: a.PerDraw}
}

func simulatedPrize(p *simulate.Prize) *kujiv1.SimulatedAmount {
	return &kujiv1.SimulatedAmount{Item: p.Item, Total: p.Total, Each: p.PerPlayer}
}

func simulatedMoment(m *simulate.Moment) *kujiv1.SimulatedMoment {
	if m == nil {
		return nil
	}
	return &kujiv1.SimulatedMoment{Draws: m.Draws, Days: m.Days}
}

// maxSteps is how many steps of a distribution an answer has at most.
const maxSteps = 1000

func simulatedCosts(u *simulate.Until) *kujiv1.SimulatedCosts {
	if u == nil {
		return nil
	}
	out := &kujiv1.SimulatedCosts{Item: u.Item, PlayersWithIt: u.Reached, Costs: mapped(u.Costs, func(c *simulate.Cost) *kujiv1.SimulatedCost {
		return &kujiv1.SimulatedCost{Item: c.Item, Mean: c.Mean, MeanError: c.Error, Median: c.Median, P90: c.P90, P99: c.P99, Worst: c.Worst}
	})}
	together := (len(u.Distribution) + maxSteps - 1) / maxSteps // steps of the report in one of the answer
	for i, s := range u.Distribution {
		if i%max(1, together) == 0 {
			out.Distribution = append(out.Distribution, &kujiv1.SimulatedStep{})
		}
		last := out.Distribution[len(out.Distribution)-1]
		last.Draws, last.Players = s.Draws, last.GetPlayers()+s.Players
	}
	return out
}

func simulatedStock(s *simulate.Stock) *kujiv1.SimulatedStock {
	if s == nil {
		return nil
	}
	return &kujiv1.SimulatedStock{
		SoldOut: simulatedMoment(s.SoldOut), SampledEntries: uint32(s.Sampled),
		Entries: mapped(s.Entries, func(e *simulate.EntryStock) *kujiv1.SimulatedEntry {
			return &kujiv1.SimulatedEntry{Pool: e.Pool, Entry: e.Entry, Stock: e.Stock, Left: e.Left, SoldOut: simulatedMoment(e.Gone)}
		}),
		Samples: mapped(s.Samples, func(one *simulate.StockSample) *kujiv1.SimulatedSample {
			return &kujiv1.SimulatedSample{At: simulatedMoment(&one.Moment), Left: one.Left}
		}),
		Budgets: mapped(s.Budgets, func(b *simulate.BudgetUse) *kujiv1.SimulatedBudget {
			return &kujiv1.SimulatedBudget{Pool: b.Pool, Per: b.Per, Share: b.Share, Item: b.Item, Limit: b.Limit, Spent: b.Spent, Spans: b.Spans, Most: b.Most, Full: b.Full}
		}),
	}
}
