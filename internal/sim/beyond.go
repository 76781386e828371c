package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// The most of an item: what is refused, cut or mailed, what waits in mailboxes, and what a Collect gives.

// mostLetters is the most letters in a mailbox.
const mostLetters = 100

// letter is some of an item in a mailbox. Letters stand in places; a new one takes the lowest that is free.
type letter struct {
	until    int64 // steady time
	place    int
	item     string
	quantity uint64
}

// beyondBook is what an event must say about caps, and what is wrong with it.
type beyondBook struct {
	over   map[string]uint64 // by what became of what, and whose
	excess string            // what somebody got beyond a cap that refuses
}

// holdings changes what players hold.
type holdings struct{ *model }

func overOf(player, item, how string) string { return fmt.Sprint(how, " ", item, " of ", player) }

// item returns an item of the catalog in force, nil if it does not have it.
func (r rulebook) item(id string) *catalog.Item {
	for i := range r.catalog.Items {
		if r.catalog.Items[i].ID == id {
			return &r.catalog.Items[i]
		}
	}
	return nil
}

// most returns how many of an item a player can hold, and what happens to more.
func (r rulebook) most(id string) (most uint64, beyond catalog.Beyond) {
	if it := r.item(id); it != nil && it.Most > 0 {
		return it.Most, it.Beyond
	}
	return 1 << 62, beyond
}

// less returns a - b, 0 if b is more.
func less(a, b uint64) uint64 { return a - min(a, b) }

// within returns how much of a gain the cap leaves a player. The rest is cut or mailed.
func (m holdings) within(h *holder, item string, q uint64) uint64 {
	most, beyond := m.most(item)
	fits := min(q, less(most, h.has(item)))
	rest := q - fits
	switch {
	case rest == 0:
	case beyond.Do == catalog.BeyondCut:
		m.over[overOf(h.id, item, "cut")] += rest
	case beyond.Do == catalog.BeyondMail:
		m.over[overOf(h.id, item, "mailed")] += rest
		h.post(item, rest, m.steady()+beyond.Mail)
	default:
		m.excess = fmt.Sprintf("%s gets %d of %s and has %d; the most is %d", h.id, q, item, h.items[item], most)
	}
	return fits
}

// post puts some of an item into a mailbox, into the letter that goes at the same moment if there is one.
func (h *holder) post(item string, q uint64, until int64) {
	for i := range h.mail {
		if l := &h.mail[i]; l.item == item && l.until == until && l.quantity+q <= kuji.MaxQuantity {
			l.quantity += q
			return
		}
	}
	place := 0
	for slices.ContainsFunc(h.mail, func(l letter) bool { return l.place == place }) {
		place++
	}
	h.mail = append(h.mail, letter{until, place, item, q})
	slices.SortFunc(h.mail, func(a, b letter) int {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.place, b.place))
	})
}

// expire removes the letters whose time has come.
func (m holdings) expire(h *holder) {
	for len(h.mail) > 0 && h.mail[0].until <= m.steady() {
		m.over[overOf(h.id, h.mail[0].item, "gone")] += h.mail[0].quantity
		h.mail = slices.Delete(h.mail, 0, 1)
	}
}

// collectable returns what a Collect takes, letter by letter.
func (m holdings) collectable(id string) (all []letter) {
	h := m.players[id]
	if h == nil {
		return nil
	}
	have := maps.Clone(h.items)
	for item, n := range h.held {
		have[item] += n
	}
	for _, l := range h.mail {
		if m.item(l.item) == nil {
			continue
		}
		most, _ := m.most(l.item)
		l.quantity = min(l.quantity, less(min(most, kuji.MaxQuantity), have[l.item]))
		if have[l.item] += l.quantity; l.quantity > 0 {
			all = append(all, l)
		}
	}
	return all
}

// collect carries out a Collect, and compares what the event says that it gave.
func (m holdings) collect(rec kuji.Record) error {
	got, h := map[string]uint64{}, m.meet(rec.Player)
	for _, it := range rec.Items {
		got[it.Item] += it.Quantity
	}
	want := map[string]uint64{}
	for _, taken := range m.collectable(rec.Player) {
		m.gain(h, taken.item, taken.quantity)
		want[taken.item] += taken.quantity
		i := slices.IndexFunc(h.mail, func(l letter) bool { return l.place == taken.place })
		if h.mail[i].quantity -= taken.quantity; h.mail[i].quantity == 0 {
			h.mail = slices.Delete(h.mail, i, i+1)
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("it collects %v, the model says %v", got, want)
	}
	return nil
}

// says compares what an event says about caps and mailboxes with the model.
func (b *beyondBook) says(rec kuji.Record) error {
	got := map[string]uint64{}
	for _, one := range append([]kuji.Record{rec}, rec.Members...) {
		for _, o := range one.Beyond {
			got[overOf(cmp.Or(o.Player, one.Player), o.Item, o.How)] += o.Quantity
		}
	}
	if !maps.Equal(got, b.over) {
		return fmt.Errorf("beyond caps were %v, the model says %v", got, b.over)
	}
	if b.excess != "" {
		return fmt.Errorf("it should have been refused: %s", b.excess)
	}
	return nil
}

// In a trial, before anything is drawn.

// fill adds a gain to what a player can hold at most, and to what is sure if the gain is. It returns why the
// command must fail.
func (t *trial) fill(player string, it kuji.Stack, sure, moves bool) kuji.Status {
	least, upmost := t.meet(player)
	most, beyond := t.most(it.Item)
	if over := less(it.Quantity, less(most, upmost[it.Item])); over > 0 {
		switch {
		case beyond.Do == catalog.BeyondRefuse, beyond.Do == catalog.BeyondCut && moves:
			return kuji.MostReached
		case beyond.Do == catalog.BeyondMail && !t.reserve(player, it.Item, over):
			return kuji.MailboxFull
		}
	}
	upmost[it.Item] += min(it.Quantity, less(most, upmost[it.Item]))
	if sure {
		least[it.Item] += min(it.Quantity, less(most, least[it.Item]+t.heldOf(player, it.Item)))
	}
	return kuji.OK
}

// heldOf returns how much of an item of a player is held.
func (t *trial) heldOf(player, item string) uint64 {
	if h := t.players[player]; h != nil {
		return h.held[item]
	}
	return 0
}

// reserve keeps room in a mailbox for the letter of an item, and reports whether there is any.
func (t *trial) reserve(player, item string, q uint64) bool {
	n := 0
	if h := t.players[player]; h != nil {
		n = len(h.mail)
	}
	if t.posted[player] == nil {
		t.posted[player] = map[string]uint64{}
	}
	if _, there := t.posted[player][item]; !there && n+len(t.posted[player]) >= mostLetters {
		return false
	}
	t.posted[player][item] += q
	return t.posted[player][item] <= kuji.MaxQuantity
}

// fillAll adds the most that draws can give of items with caps. It returns an item for which there is no room.
func (t *trial) fillAll(p *catalog.Pool, player string, draws uint64) (status kuji.Status, full string) {
	for _, it := range t.catalog.Items {
		n := t.best(p, it.ID) * draws
		if it.Most == 0 || n == 0 {
			continue
		}
		if s := t.fill(player, kuji.Stack{Item: it.ID, Quantity: n}, false, false); s != kuji.OK && (full == "" || it.ID == t.wrong) {
			status, full = s, it.ID // any of several will do
		}
	}
	return status, full
}

// capFits reports whether a reward surely fits the caps, if quests claim themselves for a player in an event.
func (m questing) capFits(rec kuji.Record, h *holder, item string, n uint64) bool {
	most, beyond := m.most(item)
	switch {
	case n <= less(most, h.items[item]) && rec.Kind != "atomic" && rec.Kind != "transfer", beyond.Do == catalog.BeyondCut:
		return true
	case beyond.Do == catalog.BeyondMail:
		return len(h.mail) < mostLetters/2
	}
	return n == 0
}

// sameMail compares the mailbox of a player's view with the model, as sameLots does with lots.
func sameMail(m *model, v kuji.PlayerView, h *holder) error {
	same := len(v.Mail) == len(h.mail)
	for i := 0; same && i < len(h.mail); i++ {
		got, want := v.Mail[i], h.mail[i]
		back := want.until - got.Until
		same = got.Item == want.item && got.Quantity == want.quantity && back >= m.back && back == h.mail[0].until-v.Mail[0].Until
	}
	if !same {
		return fmt.Errorf("player %q has the mail %v, the model says %v, less %d", v.ID, v.Mail, h.mail, m.back)
	}
	return nil
}

// capText returns keys of an item that caps it at least or more, with a comma after them, "" at times. If the item
// lasts, it is not mailed.
func capText(r *rand.Rand, least int, lasts bool) string {
	if r.IntN(2) == 0 {
		return ""
	}
	beyond := []string{"refuse", "cut", "mail", "mail", "{mail: 1m}", "{mail: 90m}", "{mail: 5h}"}[r.IntN(7)]
	if lasts {
		beyond = []string{"refuse", "cut"}[r.IntN(2)]
	}
	return fmt.Sprintf("most: %d, beyond: %s, ", least+r.IntN(8), beyond)
}

var ranges = regexp.MustCompile(`(\w+): \{min: \d+, max: (\d+)\}`)

// withoutRanges makes quantities of items with a cap certain. Where an outcome says less than what it gives, the
// model could not tell how much that is.
func withoutRanges(text string) string {
	return ranges.ReplaceAllStringFunc(text, func(s string) string {
		m := ranges.FindStringSubmatch(s)
		if !strings.Contains(text, m[1]+": {most: ") {
			return s
		}
		return m[1] + ": " + m[2]
	})
}
