package view

// Counter is where a counter of the catalog stands for a player, or for the realm.
type Counter struct {
	ID    string `json:"id"`
	Value uint64 `json:"value"`
	Realm bool   `json:"realm,omitempty"` // it is the realm's
	Rank  uint64 `json:"rank,omitempty"`  // the player's among all, of a counter that ranks players; 0: none
	// Resets is when it begins at 0 again, or when a streak ends if nothing more is counted, in Unix milliseconds;
	// 0: never, or it stands at 0.
	Resets int64 `json:"resets,omitempty"`
}

// Quest is how far a player is in a quest of the catalog.
type Quest struct {
	ID        string `json:"id"`
	Open      bool   `json:"open"`                // the player meets its condition
	Tiers     int    `json:"tiers"`               // in all
	Claimed   int    `json:"claimed"`             // of them, in the present period
	Claimable int    `json:"claimable,omitempty"` // how many more are reached: they can be claimed if their rewards are there and fit
	Needs     []Need `json:"needs,omitempty"`     // what the first tier needs that is neither claimed nor reached
	Resets    int64  `json:"resets,omitempty"`    // when it begins again, Unix milliseconds; 0: never
}

// Need is where a counter stands, and must stand.
type Need struct {
	Counter string `json:"counter"`
	Value   uint64 `json:"value"`
	Min     uint64 `json:"min"`
	Max     uint64 `json:"max"` // catalog.MaxCount: any
}
