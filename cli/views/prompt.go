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
	line, err := s.ask(ctx, question+" [y/N]", len(question))
	line = strings.ToLower(line)
	return line == "y" || line == "yes", err
}

// AskText asks for a line of text, as Ask does; the end of the input is an empty one.
func (s *Streams) AskText(ctx context.Context, question string) (string, error) {
	return s.ask(ctx, question, len(question))
}

// ask shows a question, its first bytes in bold, and reads a line.
func (s *Streams) ask(ctx context.Context, question string, bold int) (string, error) {
	_, _ = fmt.Fprint(s.Err, s.Err.palette().bold(Clean(question[:bold]))+Clean(question[bold:])+" ")
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
		return strings.TrimSpace(line), nil
	case <-ctx.Done():
		_, _ = fmt.Fprintln(s.Err)
		return "", ctx.Err()
	}
}
