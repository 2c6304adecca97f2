package run

import (
	"context"
	"slices"
	"sync"
)

// waveCache keeps the wave inputs that this process has read last. They never change, and a process that carries
// out many items of a wave would else read all of them for every one.
type waveCache struct {
	mu   sync.Mutex
	last []cachedWave // newest last
}

type cachedWave struct {
	key   string
	input waveInput
}

// cachedWaves is how many waves are kept: of a few runs at a time, the present one each.
const cachedWaves = 4

// wave returns the inputs of a wave. They must not be changed.
func (e *Engine) wave(ctx context.Context, runID string, n int) (waveInput, error) {
	key := waveKey(runID, n)
	if w, ok := e.waves.get(key); ok {
		return w, nil
	}
	var w waveInput
	if err := getJSON(ctx, e.Objects, key, &w); err != nil {
		return waveInput{}, err
	}
	e.waves.put(key, w)
	return w, nil
}

func (c *waveCache) get(key string) (waveInput, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.last {
		if w.key == key {
			return w.input, true
		}
	}
	return waveInput{}, false
}

func (c *waveCache) put(key string, input waveInput) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = slices.DeleteFunc(c.last, func(w cachedWave) bool { return w.key == key })
	if len(c.last) == cachedWaves {
		c.last = slices.Delete(c.last, 0, 1)
	}
	c.last = append(c.last, cachedWave{key, input})
}
