package views

import (
	"fmt"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
)

const (
	// uploadTold is how much is uploaded without a word where nobody watches: it takes a moment.
	uploadTold = 16 << 20
	// uploadEvery is how often a log is told how far an upload has come.
	uploadEvery = 5 * time.Second
)

// Upload shows how far an upload has come: in place on a terminal, where it leaves nothing, and in lines of a log, some
// seconds apart, where that is large. sent is told how many bytes of how many are there, and may be called concurrently and
// more than once for the same; end follows the last call, however the upload has ended.
func (s *Streams) Upload(now func() time.Time) (sent func(done, total int64), end func()) {
	u := &upload{streams: s, now: now}
	return u.sent, u.end
}

type upload struct {
	streams *Streams
	now     func() time.Time

	mu    sync.Mutex
	most  int64
	begun bool
	drawn bool
	told  time.Time
}

func (u *upload) sent(done, total int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.begun && done <= u.most {
		return // calls overtake each other
	}
	u.most = done
	first := !u.begun
	u.begun = true
	text := fmt.Sprintf("Uploading %s…", size(total))
	if done > 0 {
		text = fmt.Sprintf("Uploading %s: %d %% are there", size(total), done*100/max(total, 1))
	}
	to := u.streams.Err
	switch {
	case u.streams.Live:
		u.drawn = true
		_, _ = fmt.Fprint(to, "\r"+fit(text, to.Width()-1)+"\x1b[K")
	case total < uploadTold:
	case first || u.now().Sub(u.told) >= uploadEvery || done == total:
		u.told = u.now()
		_, _ = fmt.Fprintln(to, text)
	}
}

func (u *upload) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.drawn {
		_, _ = fmt.Fprint(u.streams.Err, "\r\x1b[K")
	}
}

// size renders a number of bytes in the units of 1,000 that networks are measured in.
func size(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }
