package election

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"slices"
	"time"
)

// Board is what nodes tell each other. A node writes only its own post: others' builds may say more.
type Board struct {
	Nodes map[string]Post `json:"nodes"`
}

// Post is what one node says.
type Post struct {
	Life  string   `json:"life"`  // of the process. Another process of the same name leads nothing of this one's
	Beat  uint64   `json:"beat"`  // another one at each look
	Leads []string `json:"leads"` // the realms that it leads, takes over or hands over
	Wants []string `json:"wants"` // the realms that it would rather lead than the node which does
	Stops bool     `json:"stops"` // it takes no more realms
	Time  int64    `json:"time"`  // what its wall clock shows, Unix milliseconds; 0: an older build does not say
	Off   bool     `json:"off"`   // it leads nothing: it is drained, or its clock is far from the others'
	// Level is the newest format level that its build knows; absent: 1.
	Level uint8 `json:"level,omitempty"`
	// Address is where other nodes find it, as HOST:PORT; absent: they know.
	Address string `json:"address,omitempty"`
	// Wait is how long the others wait for it when it is silent, in milliseconds; absent: TTL.
	Wait int64 `json:"wait,omitempty"`

	as json.RawMessage // as it was read; nil: it is this node's own
}

// plainPost is a post without its methods.
type plainPost Post

// UnmarshalJSON implements [json.Unmarshaler].
func (p *Post) UnmarshalJSON(data []byte) error {
	*p = Post{}
	err := json.Unmarshal(data, (*plainPost)(p))
	p.as = bytes.Clone(data)
	return err
}

// MarshalJSON implements [json.Marshaler].
func (p Post) MarshalJSON() ([]byte, error) {
	if p.as != nil {
		return p.as, nil
	}
	return json.Marshal(plainPost(p))
}

// takes reports whether a node may take realms.
func (p Post) takes() bool { return !p.Stops && !p.Off }

func (p Post) pulse() pulse { return pulse{p.Life, p.Beat} }

// ttl is how long the others wait for the node.
func (p Post) ttl() time.Duration { return max(TTL, time.Duration(p.Wait)*time.Millisecond) }

// ReadBoard reads a board. If it cannot, the board is empty: nobody leads anything.
func ReadBoard(data []byte) Board {
	b := Board{}
	if json.Unmarshal(data, &b) != nil || b.Nodes == nil {
		b = Board{Nodes: map[string]Post{}}
	}
	return b
}

func (b Board) data() []byte {
	data, err := json.Marshal(b)
	if err != nil {
		panic(err) // names and numbers
	}
	return data
}

// Leaders returns the node that leads each realm.
func (b Board) Leaders() map[string]string {
	all := map[string]string{}
	for name, p := range b.Nodes {
		for _, realm := range p.Leads {
			all[realm] = name
		}
	}
	return all
}

// Living returns the nodes that may take realms, in order of their names.
func (b Board) Living() []string {
	var all []string
	for name, p := range b.Nodes {
		if p.takes() {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// Level returns the newest format level that every node on the board knows, and at most the one given.
func (b Board) Level(level uint8) uint8 {
	for _, p := range b.Nodes {
		level = min(level, max(p.Level, 1))
	}
	return level
}

// First returns the node that should lead a realm, of those given; "" if there is none.
func First(nodes []string, realm string) string {
	for _, name := range nodes {
		if rankOf(nodes, name, realm) == 0 {
			return name
		}
	}
	return ""
}

// rankOf returns how many nodes come before one for a realm. Nodes that come or go do not reorder others.
func rankOf(nodes []string, node, realm string) (rank int) {
	weight := func(of string) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(of + "\x00" + realm)) // never fails
		x := h.Sum64()                              // similar names differ in the last bits only
		x = (x ^ x>>33) * 0xff51afd7ed558ccd
		x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
		return x ^ x>>33
	}
	mine := weight(node)
	for _, other := range nodes {
		if w := weight(other); other != node && (w > mine || w == mine && other < node) {
			rank++
		}
	}
	return rank
}
