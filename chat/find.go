package chat

import (
	"cmp"
	"slices"
	"sync"

	"github.com/clipperhouse/uax29/v2/words"
	"github.com/coregx/ahocorasick"
)

// finder finds the phrases of triggers in texts, all of them in one pass. It may be used concurrently.
type finder struct {
	automaton *ahocorasick.Automaton // nil: there are no phrases
	phrases   []phrase               // by the number of their pattern
	memory    sync.Pool              // of *search
}

// phrase is a phrase, and what it starts.
type phrase struct {
	text string // as configured
	fold string
	// starts are the numbers of triggers, those that go first first: one that must stand at the start and one that
	// need not can have the same phrase.
	starts []start
}

type start struct {
	trigger  int
	priority int
	atStart  bool
}

// newFinder compiles the phrases of triggers.
func newFinder(triggers []Trigger) (*finder, error) {
	f := &finder{memory: sync.Pool{New: func() any { return &search{folder: newFolder()} }}}
	s := f.memory.Get().(*search)
	defer f.memory.Put(s)
	known := map[string]int{}
	b := ahocorasick.NewBuilder()
	for i := range triggers {
		t := &triggers[i]
		for _, text := range t.Phrases {
			fold := string(s.folder.any(text))
			n, ok := known[fold]
			if !ok {
				n = len(f.phrases)
				known[fold] = n
				f.phrases = append(f.phrases, phrase{text: text, fold: fold})
				s.folder.mark(text)
				b.AddPattern(slices.Clone(s.folder.marked))
			}
			f.phrases[n].starts = append(f.phrases[n].starts, start{i, t.Priority, t.AtStart})
		}
	}
	if len(f.phrases) == 0 {
		return f, nil
	}
	for i := range f.phrases {
		slices.SortStableFunc(f.phrases[i].starts, func(a, b start) int { return cmp.Compare(b.priority, a.priority) })
	}
	var err error
	f.automaton, err = b.Build()
	return f, err
}

// match is a phrase that was found.
type match struct {
	phrase     int
	trigger    int
	priority   int
	start, end int // in the fold
}

// search is the memory of one search.
type search struct {
	folder folder
	at     []int32 // where each byte of the marked text is in the fold
	edges  []bool  // where a word of the fold begins, or the last one ends
	found  []match
}

// find returns which triggers a text starts, by priority and then by place. They are valid until s is used again.
//
// Of phrases that overlap, the first one wins, and of those that begin at one place, the longest. Then the trigger with
// the highest priority has it. A trigger is found once.
func (f *finder) find(s *search, text string) []match {
	if f.automaton == nil {
		return nil
	}
	s.folder.mark(text)
	all := f.automaton.FindAllOverlapping(s.folder.marked)
	if len(all) == 0 {
		return nil
	}
	s.place()
	s.found = s.found[:0]
	for _, m := range all {
		from, to := int(s.at[m.Start]), int(s.at[m.End])
		if !s.edges[from] || !s.edges[to] {
			continue
		}
		for _, st := range f.phrases[m.PatternID].starts {
			if !st.atStart || from == 0 {
				s.found = append(s.found, match{m.PatternID, st.trigger, st.priority, from, to})
				break
			}
		}
	}
	s.choose()
	return s.found
}

// choose leaves the matches that count, in the order in which they are carried out.
func (s *search) choose() {
	slices.SortFunc(s.found, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	kept, end := s.found[:0], 0
	for _, m := range s.found {
		if m.start < end {
			continue
		}
		end = m.end
		if !slices.ContainsFunc(kept, func(k match) bool { return k.trigger == m.trigger }) {
			kept = append(kept, m)
		}
	}
	slices.SortStableFunc(kept, func(a, b match) int { return cmp.Compare(b.priority, a.priority) })
	s.found = kept
}

// place finds the fold in the marked text, and the boundaries of its words.
func (s *search) place() {
	marked := s.folder.marked
	fold := s.folder.fold[:0]
	s.at = s.at[:0]
	for _, c := range marked {
		s.at = append(s.at, int32(len(fold)))
		if c != mark {
			fold = append(fold, c)
		}
	}
	s.at = append(s.at, int32(len(fold)))
	s.folder.fold = fold
	s.edges = append(s.edges[:0], make([]bool, len(fold)+1)...)
	s.edges[0] = true
	for it := words.FromBytes(fold); it.Next(); {
		s.edges[it.End()] = true
	}
}

// after returns the fold after a match.
func (s *search) after(m match) []byte { return s.folder.fold[m.end:] }
