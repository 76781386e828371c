package server

import (
	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// Event returns an event as the API says it, with the record's memory in it.
func Event(rec *kuji.Record) *kujiv1.Event { return message.Event(rec) }

// Plan returns a plan as the API says it.
func Plan(p *kuji.Plan) *kujiv1.Plan { return message.Plan(p) }
