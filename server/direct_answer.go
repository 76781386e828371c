package server

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/kuji-dev/kuji"
)

// Numbers of the fields of DrawResponse, Result and Receipt.
const (
	fieldResponseResult = 1

	fieldResultStatus   = 1
	fieldResultOutcomes = 3
	fieldResultReplayed = 5
	fieldResultReceipt  = 6

	fieldReceiptRealm          = 1
	fieldReceiptPosition       = 2
	fieldReceiptIndex          = 3
	fieldReceiptTime           = 4
	fieldReceiptCatalogVersion = 5
	fieldReceiptEpoch          = 6
	fieldReceiptCommitment     = 7
)

// drawn reports whether a result has nothing but what a draw that was carried
// out has.
func drawn(res *kuji.Result) bool {
	return res.Status == kuji.OK && res.Err == nil && res.Subject == "" && res.Members == nil
}

// appendDrawProto appends the DrawResponse with a result, in binary. It returns
// false for a result that it cannot write.
func appendDrawProto(dst []byte, res *kuji.Result) ([]byte, bool) {
	if !drawn(res) || !utf8.ValidString(res.Receipt.Realm) {
		return dst, false
	}
	receipt := receiptSize(&res.Receipt)
	size := protowire.SizeTag(fieldResultStatus) + 1 + protowire.SizeTag(fieldResultReceipt) + protowire.SizeBytes(receipt)
	if res.Replayed {
		size += protowire.SizeTag(fieldResultReplayed) + 1
	}
	for i := range res.Outcomes {
		n, ok := outcomeSize(&res.Outcomes[i])
		if !ok {
			return dst, false
		}
		size += protowire.SizeTag(fieldResultOutcomes) + protowire.SizeBytes(n)
	}
	dst = appendHead(dst, fieldResponseResult, size)
	dst = appendUint(dst, fieldResultStatus, uint64(statusProto(res.Status)))
	for i := range res.Outcomes {
		o := &res.Outcomes[i]
		n, _ := outcomeSize(o)
		dst = appendOutcome(appendHead(dst, fieldResultOutcomes, n), o)
	}
	if res.Replayed {
		dst = appendUint(dst, fieldResultReplayed, 1)
	}
	return appendReceipt(appendHead(dst, fieldResultReceipt, receipt), &res.Receipt), true
}

// appendHead appends what stands before a message of a size.
func appendHead(dst []byte, field protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.BytesType), uint64(size))
}

// outcomeSize is the size of an Outcome's message; false when not all of it is text.
func outcomeSize(o *kuji.Outcome) (n int, ok bool) {
	ok = utf8.ValidString(o.Entry)
	n = stringSize(fieldOutcomeEntry, o.Entry)
	for _, s := range o.Items {
		ok = ok && utf8.ValidString(s.Item)
		n += protowire.SizeTag(fieldOutcomeItems) + protowire.SizeBytes(stackSize(s))
	}
	for _, v := range o.Via {
		ok = ok && utf8.ValidString(v)
		n += protowire.SizeTag(fieldOutcomeVia) + protowire.SizeBytes(len(v))
	}
	return n, ok
}

// appendOutcome appends an Outcome's fields.
func appendOutcome(dst []byte, o *kuji.Outcome) []byte {
	dst = appendString(dst, fieldOutcomeEntry, o.Entry)
	for _, s := range o.Items {
		dst = appendHead(dst, fieldOutcomeItems, stackSize(s))
		dst = appendString(dst, fieldStackItem, s.Item)
		dst = appendUint(dst, fieldStackQuantity, s.Quantity)
	}
	for _, v := range o.Via {
		dst = protowire.AppendTag(dst, fieldOutcomeVia, protowire.BytesType)
		dst = protowire.AppendString(dst, v)
	}
	return dst
}

// receiptSize is the size of a Receipt's message.
func receiptSize(r *kuji.Receipt) int {
	return stringSize(fieldReceiptRealm, r.Realm) + uintSize(fieldReceiptPosition, r.Position) +
		uintSize(fieldReceiptIndex, uint64(uint32(r.Index))) + uintSize(fieldReceiptTime, uint64(r.Time)) +
		uintSize(fieldReceiptCatalogVersion, r.CatalogVersion) + uintSize(fieldReceiptEpoch, r.Epoch) +
		protowire.SizeTag(fieldReceiptCommitment) + protowire.SizeBytes(len(r.Commitment))
}

// appendReceipt appends a Receipt's fields.
func appendReceipt(dst []byte, r *kuji.Receipt) []byte {
	dst = appendString(dst, fieldReceiptRealm, r.Realm)
	dst = appendUint(dst, fieldReceiptPosition, r.Position)
	dst = appendUint(dst, fieldReceiptIndex, uint64(uint32(r.Index)))
	dst = appendUint(dst, fieldReceiptTime, uint64(r.Time))
	dst = appendUint(dst, fieldReceiptCatalogVersion, r.CatalogVersion)
	dst = appendUint(dst, fieldReceiptEpoch, r.Epoch)
	dst = protowire.AppendTag(dst, fieldReceiptCommitment, protowire.BytesType)
	return protowire.AppendBytes(dst, r.Commitment[:])
}

// uintSize is what appendUint appends, stringSize what appendString does.
func uintSize(field protowire.Number, v uint64) int {
	if v == 0 {
		return 0
	}
	return protowire.SizeTag(field) + protowire.SizeVarint(v)
}

func stringSize(field protowire.Number, s string) int {
	if s == "" {
		return 0
	}
	return protowire.SizeTag(field) + protowire.SizeBytes(len(s))
}

// jsonWriter appends JSON. Fields that are 0 or empty are left out, as the
// standard mapping of the contract has it.
type jsonWriter struct {
	buf []byte
	odd bool // a text would need escapes, or is none
}

// appendDrawJSON appends the DrawResponse with a result, in JSON. It returns
// false for a result that it cannot write.
func appendDrawJSON(dst []byte, res *kuji.Result) ([]byte, bool) {
	if !drawn(res) {
		return dst, false
	}
	j := jsonWriter{buf: append(dst, `{"result":{"status":"STATUS_OK"`...)}
	if len(res.Outcomes) > 0 {
		j.key("outcomes")
		for i := range res.Outcomes {
			j.outcome(&res.Outcomes[i], i == 0)
		}
		j.buf = append(j.buf, ']')
	}
	if res.Replayed {
		j.key("replayed")
		j.buf = append(j.buf, "true"...)
	}
	j.key("receipt")
	j.receipt(&res.Receipt)
	return append(j.buf, "}}"...), !j.odd
}

// key appends the name of a field, before it a comma unless it is the first.
func (j *jsonWriter) key(name string) {
	if last := j.buf[len(j.buf)-1]; last != '{' {
		j.buf = append(j.buf, ',')
	}
	j.buf = append(append(append(j.buf, '"'), name...), '"', ':')
}

// text appends a string.
func (j *jsonWriter) text(s string) {
	ascii := true
	for i := range len(s) {
		c := s[i]
		j.odd = j.odd || c < ' ' || c == '"' || c == '\\'
		ascii = ascii && c < utf8.RuneSelf
	}
	j.odd = j.odd || !ascii && !utf8.ValidString(s)
	j.buf = append(append(append(j.buf, '"'), s...), '"')
}

// field appends a field of text.
func (j *jsonWriter) field(name, s string) {
	if s != "" {
		j.key(name)
		j.text(s)
	}
}

// long appends a field of 64 bits, which JSON holds as text.
func (j *jsonWriter) long(name string, v uint64) {
	if v != 0 {
		j.key(name)
		j.buf = append(strconv.AppendUint(append(j.buf, '"'), v, 10), '"')
	}
}

// open begins a list's element.
func (j *jsonWriter) open(first bool) {
	c := byte(',')
	if first {
		c = '['
	}
	j.buf = append(j.buf, c)
}

func (j *jsonWriter) outcome(o *kuji.Outcome, first bool) {
	j.open(first)
	j.buf = append(j.buf, '{')
	j.field("entry", o.Entry)
	if len(o.Items) > 0 {
		j.key("items")
		for i, s := range o.Items {
			j.open(i == 0)
			j.buf = append(j.buf, '{')
			j.field("item", s.Item)
			j.long("quantity", s.Quantity)
			j.buf = append(j.buf, '}')
		}
		j.buf = append(j.buf, ']')
	}
	if len(o.Via) > 0 {
		j.key("via")
		for i, v := range o.Via {
			j.open(i == 0)
			j.text(v)
		}
		j.buf = append(j.buf, ']')
	}
	j.buf = append(j.buf, '}')
}

func (j *jsonWriter) receipt(r *kuji.Receipt) {
	j.buf = append(j.buf, '{')
	j.field("realm", r.Realm)
	j.long("position", r.Position)
	if i := uint32(r.Index); i != 0 {
		j.key("index")
		j.buf = strconv.AppendUint(j.buf, uint64(i), 10)
	}
	if r.Time != 0 {
		j.key("timeUnixMs")
		j.buf = append(strconv.AppendInt(append(j.buf, '"'), r.Time, 10), '"')
	}
	j.long("catalogVersion", r.CatalogVersion)
	j.long("epoch", r.Epoch)
	j.key("commitment")
	j.buf = append(base64.StdEncoding.AppendEncode(append(j.buf, '"'), r.Commitment[:]), '"', '}')
}
