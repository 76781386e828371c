package chat

// memory is a map that forgets the oldest: when the young half is full, it becomes the old half, and what was old and
// was not used since is forgotten.
type memory[K comparable, V any] struct {
	young, old map[K]V
	half       int
}

func newMemory[K comparable, V any](most int) memory[K, V] {
	return memory[K, V]{young: map[K]V{}, half: most / 2}
}

// get returns what is known. What is used stays.
func (m *memory[K, V]) get(k K) (v V, ok bool) {
	if v, ok = m.young[k]; ok {
		return v, true
	}
	if v, ok = m.old[k]; ok {
		m.put(k, v)
	}
	return v, ok
}

// put adds something, or replaces it.
func (m *memory[K, V]) put(k K, v V) {
	if _, known := m.young[k]; !known && len(m.young) >= m.half {
		m.young, m.old = m.old, m.young
		clear(m.young)
		if m.young == nil {
			m.young = map[K]V{}
		}
	}
	m.young[k] = v
}
