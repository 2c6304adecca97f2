package objects

import "sync"

// generation is how many bytes of documents are kept before the older half of them is forgotten.
const generation = 32 << 20

// memory keeps documents that never change under their keys: those that this process has written or read. A run that
// is carried here is thereby never read back. It forgets what has not been asked for longest, in halves.
type memory struct {
	mu         sync.Mutex
	young, old map[string][]byte
	size       int // of young, in bytes
}

func (m *memory) get(key string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if body, ok := m.young[key]; ok {
		return body, true
	}
	body, ok := m.old[key]
	if ok {
		m.add(key, body)
	}
	return body, ok
}

func (m *memory) put(key string, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(key, body)
}

func (m *memory) add(key string, body []byte) {
	if m.size+len(body) > generation || m.young == nil {
		m.young, m.old, m.size = map[string][]byte{}, m.young, 0
	}
	if _, ok := m.young[key]; !ok {
		m.size += len(body)
	}
	m.young[key] = body
}
