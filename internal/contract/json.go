package contract

import (
	"bytes"
	"encoding/json"
	"strconv"

	"google.golang.org/protobuf/proto"
)

// AppendJSON appends a message in plain form, as one JSON object.
func (f Form) AppendJSON(dst []byte, m proto.Message) []byte {
	w := jsonWriter{out: dst}
	f.Write(&w, m.ProtoReflect())
	return w.out
}

// jsonWriter writes values as JSON.
type jsonWriter struct {
	out  []byte
	ends []byte // of the maps and lists that are open
	next bool   // a value was written before, in the same list or map
}

func (w *jsonWriter) begin(open, end byte) {
	w.comma()
	w.out, w.ends, w.next = append(w.out, open), append(w.ends, end), false
}

// comma separates values. The value of a key follows a colon.
func (w *jsonWriter) comma() {
	if w.next {
		w.out = append(w.out, ',')
	}
	w.next = true
}

func (w *jsonWriter) Map(int)  { w.begin('{', '}') }
func (w *jsonWriter) List(int) { w.begin('[', ']') }

func (w *jsonWriter) End() {
	last := len(w.ends) - 1
	w.out, w.ends, w.next = append(w.out, w.ends[last]), w.ends[:last], true
}

func (w *jsonWriter) Key(name string) {
	w.Text(name)
	w.out, w.next = append(w.out, ':'), false
}

func (w *jsonWriter) Text(s string) {
	w.comma()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // never fails: a string
	w.out = append(w.out, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

func (w *jsonWriter) Unsigned(n uint64) {
	w.comma()
	w.out = strconv.AppendUint(w.out, n, 10)
}

func (w *jsonWriter) Integer(n int64) {
	w.comma()
	w.out = strconv.AppendInt(w.out, n, 10)
}

func (w *jsonWriter) Double(x float64) {
	w.comma()
	text, err := json.Marshal(x)
	if err != nil { // JSON has no infinity
		text = []byte("null")
	}
	w.out = append(w.out, text...)
}

func (w *jsonWriter) Bool(yes bool) {
	w.comma()
	w.out = strconv.AppendBool(w.out, yes)
}
