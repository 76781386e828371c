package server

import (
	"cmp"
	"fmt"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/contract"
)

// Limits of the contract, which no option changes. Package kuji has those of ids, items and members.
const (
	// MaxPage is the most entries or items in one answer.
	MaxPage = 10_000
	// DefaultPage is the number of entries or items in an answer if the request does not give one.
	DefaultPage = 1000
	// MaxHistoryPage is the most events, players or holders in one answer of a history.
	MaxHistoryPage = 1000
	// MaxDepth is how deeply messages in a request may be nested, in JSON and in binary.
	MaxDepth = 16
	// MaxBatchOutcomes is the most outcomes of all draws in one Batch, or in one batch of a stream.
	MaxBatchOutcomes = 100_000
	// MaxMessages is the most messages in one request: commands, what they ask for, members, items.
	MaxMessages = 100_000
	// catalogSlack is what a catalog's request may contain in addition to the YAML, in bytes.
	catalogSlack = 64 << 10
)

// Those that package contract needs, too, are the same there: what differs does not compile.
var _ = [1]bool{}[(MaxDepth-contract.MaxDepth)|(MaxPage-contract.MaxPage)|(DefaultPage-contract.DefaultPage)|(MaxBatchOutcomes-contract.MaxBatchOutcomes)]

// Limits bounds what clients can make the server hold at a time. If there are keys, one key or
// player can hold at most three times what it leaves free of Connections, RequestMemory, InFlight,
// BulkInFlight, WorkBytes, DrawStreams and EventStreams. Zero: the default. Negative: an error.
type Limits struct {
	// RequestBytes is the largest request message, decompressed, except for the RPCs below.
	// Default: 64 KiB, twice what the largest valid one needs in JSON with every character escaped.
	RequestBytes int
	// BatchBytes is the same limit for Atomic, Batch and ImportCodes, and for each batch of a
	// stream. Default: 4 MiB, enough for 10 000 draws with ids of any length.
	BatchBytes int
	// CatalogBytes is the same limit for ApplyCatalog, whose YAML is base64 in JSON. Default: what
	// a catalog of catalog.MaxBytes needs in JSON.
	CatalogBytes int
	// HeaderBytes is the largest request header. net/http allows about 4 KiB more. Default: 16 KiB.
	HeaderBytes int
	// HeaderTimeout is the time to send a header or to answer an HTTP/2 ping. Default: 5 s.
	HeaderTimeout time.Duration
	// ReadTimeout is the time to send a whole request that is no stream. Default: 30 s.
	ReadTimeout time.Duration
	// WriteTimeout is the time from a request's header to the end of its answer; in a stream, how
	// long a client may take to read one answer. Default: 60 s.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection, or a stream between batches, may idle. Default: 2 min.
	IdleTimeout time.Duration
	// Streams is the most calls at a time on one HTTP/2 connection. Default: 256.
	Streams int
	// Connections is the most connections at a time, fewer if the process may not open so many
	// files. One more replaces one that waits for its client: see admission.Conns. Default: 16384.
	Connections int
	// RequestMemory is the most memory that requests may take, in bytes: their bodies until the
	// call is answered, and 16 KiB for each request. Any more get unavailable at once. At least
	// twice the largest message. Default: 256 MiB.
	RequestMemory int
	// InFlight is the most arrived calls at a time. Others get unavailable at once. Default: 4096.
	InFlight int
	// BulkInFlight is the most Atomic, Batch, ImportCodes and ExportCatalog calls that are carried
	// out at a time. More of them wait, and count for InFlight. A decoded request takes at most
	// about 25 MB. Default: 16. ApplyCatalog calls are carried out one at a time.
	BulkInFlight int
	// WorkBytes is the most memory for results and answers of calls and batches, in bytes,
	// estimated from their requests. A call of up to 64 KiB counts nothing, a larger one whole, and
	// waits if too little is left. Those of one key go in order. Default: 256 MiB.
	WorkBytes int
	// DrawStreams is the most StreamDraws calls at a time, which count for InFlight. Any more get
	// unavailable at once. Default: 256.
	DrawStreams int
	// EventStreams is the most StreamEvents and Backup calls at a time, which count for InFlight.
	// StreamEvents has at most 120 a realm: 8 of kuji.MaxReaders are kept for the history and the
	// program that embeds the server. Any more get unavailable at once. Default: 256.
	EventStreams int
	// StreamBatches is the most batches of one stream that are read and not answered. The client of
	// a full stream waits. WorkBytes bounds their results and answers. Default: 4.
	StreamBatches int
}

// setDefault sets a limit that is zero. It reports one that is negative, if it is the first.
func setDefault[T int | time.Duration](err *error, name string, v *T, def T) {
	if *v < 0 && *err == nil {
		*err = fmt.Errorf("server: Limits.%s is %v, want at least 0", name, *v)
	}
	*v = cmp.Or(*v, def)
}

func (l Limits) withDefaults() (Limits, error) {
	var err error
	set := func(name string, v *int, def int) { setDefault(&err, name, v, def) }
	set("RequestBytes", &l.RequestBytes, 64<<10)
	set("BatchBytes", &l.BatchBytes, 4<<20)
	set("CatalogBytes", &l.CatalogBytes, catalog.MaxBytes/3*4+catalogSlack)
	set("HeaderBytes", &l.HeaderBytes, 16<<10)
	set("Streams", &l.Streams, 256)
	set("Connections", &l.Connections, 16<<10)
	set("RequestMemory", &l.RequestMemory, 256<<20)
	set("InFlight", &l.InFlight, 4096)
	set("BulkInFlight", &l.BulkInFlight, 16)
	set("WorkBytes", &l.WorkBytes, 256<<20)
	set("DrawStreams", &l.DrawStreams, 256)
	set("EventStreams", &l.EventStreams, 256)
	set("StreamBatches", &l.StreamBatches, 4)
	setDefault(&err, "HeaderTimeout", &l.HeaderTimeout, 5*time.Second)
	setDefault(&err, "ReadTimeout", &l.ReadTimeout, 30*time.Second)
	setDefault(&err, "WriteTimeout", &l.WriteTimeout, time.Minute)
	setDefault(&err, "IdleTimeout", &l.IdleTimeout, 2*time.Minute)
	if least := 2 * max(l.RequestBytes, l.BatchBytes, l.CatalogBytes, 1<<20); l.RequestMemory < least && err == nil {
		err = fmt.Errorf("server: Limits.RequestMemory is %d, want at least %d: twice the largest message", l.RequestMemory, least)
	}
	return l, err
}

// page returns which of n things a paged read wants, by its offset and limit: from ≤ i < to.
func page(field string, offset, limit uint32, n int) (from, to int, err error) {
	most, err := pageLimit(field, limit, DefaultPage, MaxPage)
	if err != nil {
		return 0, 0, err
	}
	from = min(int(offset), n)
	return from, min(from+most, n), nil
}

// pageLimit checks how many things a request wants in an answer; if it does not say, it wants def.
func pageLimit(field string, limit uint32, def, most int) (int, error) {
	if int64(limit) > int64(most) {
		return 0, &kuji.Error{Code: kuji.CodeInvalid, Field: field, Message: fmt.Sprintf("is %d, want at most %d", limit, most)}
	}
	return cmp.Or(int(limit), def), nil
}
