package server

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// A small request can ask for much: one of 50 bytes for a thousand outcomes, or for ten thousand
// entries of a pool. So a call takes what its results and its answer need from a budget of bytes
// before it is carried out, and gives it back when the answer is sent.
//
// A call takes once. Whoever has taken needs nothing more to end, so nobody waits for ever.

// What results and answers take in memory, in bytes, if rewards have two items. TestWork measures it.
const (
	commandBytes = 3072 // a command of a batch, or a member of a group
	drawBytes    = 1024 // a draw of a stream
	outcomeBytes = 2560 // an outcome of a unary call
	sharedBytes  = 384  // an outcome in an answer that writes equal ones once
	entryBytes   = 4096 // an entry in a page of a pool
	itemBytes    = 1024 // an item in a page of a catalog
)

// smallWork is what a call can take in addition to the budget, in bytes: Limits.InFlight bounds how
// many do.
const smallWork = 64 << 10

// takeWork waits until n bytes are left for a caller, and takes them. More than there can be is as
// much as there can be. It returns what is to be given back. The error is ctx's.
func (s *Server) takeWork(ctx context.Context, who caller, n int64) (taken int64, err error) {
	if n <= smallWork {
		return 0, nil
	}
	n = min(n, s.work.most())
	if err := s.work.wait(ctx, who, n); err != nil {
		return 0, err
	}
	return n, nil
}

func (s *Server) giveWork(who caller, taken int64) {
	if taken > 0 {
		s.work.give(who, taken)
	}
}

// workOf returns how many bytes the results and the answer of a unary call need.
func workOf(request proto.Message) int64 {
	switch m := request.(type) {
	case *kujiv1.DrawRequest:
		return asked(m.GetCount()) * outcomeBytes
	case *kujiv1.RedeemRequest:
		return kuji.MaxRedeemTimes * outcomeBytes
	case *kujiv1.AtomicRequest:
		return membersWork(m.GetMembers())
	case *kujiv1.BatchRequest:
		n := int64(0)
		for _, c := range m.GetCommands() {
			n += commandBytes + (drawn(c.GetDraw())+paid(c.GetRedeem()))*sharedBytes + membersWork(c.GetAtomic().GetMembers())
		}
		return n
	case *kujiv1.GetPoolRequest:
		n := int64(entryBytes)
		if m.GetNames() {
			n += itemBytes
		}
		return pageWork(m.GetEntryLimit(), n)
	case *kujiv1.GetCatalogRequest:
		return pageWork(m.GetItemLimit(), itemBytes)
	}
	return 0
}

func membersWork(members []*kujiv1.Member) int64 {
	n := int64(0)
	for _, m := range members {
		n += commandBytes + drawn(m.GetDraw())*outcomeBytes
	}
	return n
}

func pageWork(limit uint32, each int64) int64 {
	if limit == 0 {
		limit = DefaultPage
	}
	return int64(min(limit, MaxPage)) * each
}
