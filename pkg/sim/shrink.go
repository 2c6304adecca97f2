package sim

// Shrink finds the fewest faults of a failing history that still break it. play plays a history. First the shortest
// prefix of the faults is looked for, after which nothing goes wrong any more; then each of these is left out in turn.
func Shrink(failing Result, play func(seed uint64, opts Options) Result) (Result, Options) {
	best, opts := failing, Options{Faults: failing.Faults}
	for n := 0; n < failing.Faults; n++ {
		bound := n
		if n == 0 {
			bound = -1
		}
		if r := play(failing.Seed, Options{Faults: bound}); r.Violation != "" {
			best, opts = r, Options{Faults: bound}
			break
		}
	}
	skip := map[int]bool{}
	for n := 1; n < opts.Faults; n++ {
		skip[n] = true
		r := play(failing.Seed, Options{Faults: opts.Faults, Skip: skip})
		if r.Violation == "" {
			delete(skip, n)
			continue
		}
		best = r
	}
	opts.Skip = skip
	return best, opts
}
