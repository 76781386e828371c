package server

import (
	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// Event returns an event as the API says it. The two share memory.
func Event(rec *kuji.Record) *kujiv1.Event { return message.Event(rec) }
