package objects

// Waiting is how many changes of a run wait to be written.
func (s *Store) Waiting(runID string) int {
	d := s.desk(runID)
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queue)
}
