package chat

// Trigger is what phrases start.
type Trigger struct {
	Phrases  []string
	Priority int  // of triggers with the same phrase, the highest has it
	AtStart  bool // a message must begin with the phrase
}
