package views

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// Ask puts a yes-or-no question to the person at the terminal, on Err so that Out stays data. Anything but
// "y" or "yes" is no; so is the end of the input. When ctx ends first its error is returned.
func (s *Streams) Ask(ctx context.Context, question string) (bool, error) {
	_, _ = fmt.Fprint(s.Err, s.Err.palette().bold(Clean(question))+" [y/N] ")
	answer := make(chan string, 1)
	// The read can't be interrupted; when ctx ends the process is about to end as well.
	go func() {
		line, _ := bufio.NewReader(s.In).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		if !strings.HasSuffix(line, "\n") {
			_, _ = fmt.Fprintln(s.Err)
		}
		line = strings.ToLower(strings.TrimSpace(line))
		return line == "y" || line == "yes", nil
	case <-ctx.Done():
		_, _ = fmt.Fprintln(s.Err)
		return false, ctx.Err()
	}
}
