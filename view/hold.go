package view

// Hold is a request that is held: see kuji.Draw.Hold.
type Hold struct {
	ID     string `json:"id"`    // the request id
	State  string `json:"state"` // open; confirmed; cancelled; or expired: cancelled at its deadline
	Refund bool   `json:"refund,omitempty"`
	Asked  int64  `json:"asked,omitempty"` // Unix milliseconds
	Until  int64  `json:"until,omitempty"` // its deadline, of one that is open, Unix milliseconds
	Ended  int64  `json:"ended,omitempty"` // when it was confirmed or cancelled, Unix milliseconds
	By     string `json:"by,omitempty"`    // the request id that did so
	// Parts are what is held of its members, in order, while it is open. A request that is no group has one.
	Parts []HoldPart `json:"parts,omitempty"`
}

// Size returns how many parts a hold has, and items in them.
func (h *Hold) Size() (n int) {
	for i := range h.Parts {
		n += 1 + len(h.Parts[i].Takes) + len(h.Parts[i].Gives)
	}
	return n
}

// HoldPart is what is held of a member of a Hold.
type HoldPart struct {
	Kind   string `json:"kind"` // draw, grant, consume or transfer
	Player string `json:"player"`
	To     string `json:"to,omitempty"`    // of a transfer
	Pool   string `json:"pool,omitempty"`  // of draws that are made when it is confirmed
	Draws  uint64 `json:"draws,omitempty"` // how many
	Takes  []Held `json:"takes,omitempty"` // what is gone when it is confirmed, and else comes back
	Gives  []Held `json:"gives,omitempty"` // what the player gets when it is confirmed, and else is gone
	Codes  int    `json:"codes,omitempty"` // how many codes come with it
}
