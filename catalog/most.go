package catalog

import (
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/kuji-dev/kuji/internal/document"
)

// A player can hold at most so many of an item. What is more is refused, cut off, or put into the player's
// mailbox.

// Bounds of how long mail waits.
const (
	MinMail     = time.Minute
	MaxMail     = 3650 * 24 * time.Hour // ten years
	DefaultMail = 30 * 24 * time.Hour
)

// Beyond says what happens to what would be more than the most of an item. The zero value refuses it.
type Beyond struct {
	Do   BeyondDo `json:"do"`
	Mail int64    `json:"mail,omitempty"` // milliseconds that it waits in the mailbox
}

// BeyondDo is one of the things that can happen.
type BeyondDo uint8

const (
	BeyondRefuse BeyondDo = 0 // a command that could give more fails
	BeyondCut    BeyondDo = 1 // what is more is not gained
	BeyondMail   BeyondDo = 2 // what is more goes to the player's mailbox
)

// beyondShape is a word, or a mapping that also says how long mail waits.
type beyondShape struct {
	words choiceShape[BeyondDo]
	more  *object[Beyond]
}

var beyonds = beyondShape{choiceShape[BeyondDo]{
	{"refuse", BeyondRefuse, "A command that could give more fails."},
	{"cut", BeyondCut, "What is more is not gained."},
	{"mail", BeyondMail, "What is more waits in the player's mailbox for " + document.FormatDuration(DefaultMail) + "."},
}, mapping("beyond", "What is more waits in the player's mailbox.",
	key("mail", duration[int64](time.Millisecond, MinMail, MaxMail), func(b *Beyond) *int64 { return &b.Mail },
		"For how long; from "+document.FormatDuration(MinMail)+" to "+document.FormatDuration(MaxMail)+".").must(),
)}

func (s beyondShape) expects() string { return s.words.expects() + ", or " + s.more.expects() }

func (s beyondShape) read(r *reader, n *yaml.Node, dst *Beyond) {
	*dst = Beyond{}
	if n.Kind == yaml.MappingNode {
		dst.Do = BeyondMail
		s.more.read(r, n, dst)
		return
	}
	before := len(r.list)
	if s.words.read(r, n, &dst.Do); dst.Do == BeyondMail {
		dst.Mail = DefaultMail.Milliseconds()
	}
	r.widen(before, s.words.expects(), s.expects())
}

func (s beyondShape) check(k *report, b *Beyond) {
	switch s.words.check(k, &b.Do); {
	case b.Do == BeyondMail:
		s.more.check(k, b)
	case b.Mail != 0:
		k.fault("expected no time with %s, found %d milliseconds", s.words.write(1, &b.Do), b.Mail)
	}
}

func (s beyondShape) write(scale uint64, b *Beyond) string {
	if b.Do == BeyondMail && b.Mail != DefaultMail.Milliseconds() {
		return s.more.write(scale, b)
	}
	return s.words.write(scale, &b.Do)
}

func (s beyondShape) schema(d definitions) *schemaNode {
	return &schemaNode{OneOf: []*schemaNode{s.words.schema(d), s.more.schema(d)}}
}

// codeMost is the most of an item in the form.
func (i *Item) codeMost(x *coder) {
	if number(x, &i.Most); i.Most == 0 {
		x.fail("expected the most of an item, found 0")
	}
	if kind(x, &i.Beyond.Do); i.Beyond.Do == BeyondMail {
		number(x, &i.Beyond.Mail)
	}
}

// checkMost checks what the most of an item says with other keys.
func (k *check) checkMost(it *Item) {
	if it.Most == 0 {
		if it.Beyond != (Beyond{}) && k.line == nil {
			k.faultAt("beyond", "expected none: it needs most")
		}
		return
	}
	if it.Grows.To > it.Most {
		k.faultAt("most", "expected at least %d, to which the item grows, found %d", it.Grows.To, it.Most)
	}
	if it.Lasts > 0 && it.Beyond.Do == BeyondMail {
		k.faultAt("beyond", "expected refuse or cut: the item lasts, and would begin to only when it is collected")
	}
}

// checkStart checks that starting grants are no more than a player can hold.
func (k *check) checkStart() {
	for _, st := range k.c.Start {
		for i := range k.c.Items {
			if it := &k.c.Items[i]; it.ID == st.Item && it.Most > 0 && st.Quantity > it.Most {
				k.at("start", func() {
					k.faultAt(st.Item, "expected at most %d, the most that a player can hold, found %d", it.Most, st.Quantity)
				})
			}
		}
	}
}
