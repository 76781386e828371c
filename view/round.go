package view

// Round is a round that was opened.
type Round struct {
	Name     string `json:"round"`
	Number   uint64 `json:"number"`
	State    string `json:"state"`            // open; settled; or returned: everything went back
	Opener   string `json:"opener,omitempty"` // who opened it, if a player did
	Opened   int64  `json:"opened"`           // Unix milliseconds
	Until    int64  `json:"until,omitempty"`  // when it is settled, or if it is closed, forgotten, Unix milliseconds; 0: never by itself, or in a result, by the calendar
	Entrants uint64 `json:"entrants"`
	Tickets  uint64 `json:"tickets"` // of all of them
	// Winners are those of a round that was settled, by place.
	Winners []Winner `json:"winners,omitempty"`
	// Joined are some entrants, by the order of joining. Those of a closed round are gone, unless winners can be drawn
	// again.
	Joined []Entrant `json:"joined,omitempty"`
}

// Winner is a player who has won a round.
type Winner struct {
	Player string `json:"player"`
	Missed bool   `json:"missed,omitempty"` // the reward was not there or did not fit
}

// Entrant is a player who has joined a round.
type Entrant struct {
	Player  string `json:"player"`
	Tickets uint64 `json:"tickets"`
	Held    []Held `json:"held,omitempty"` // the stake, or the price of the tickets
}

// Held is some of an item that is held.
type Held struct {
	Item     string `json:"item"`
	Quantity uint64 `json:"quantity"`
}
