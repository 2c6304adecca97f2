package secret

import (
	"strconv"
	"strings"
)

const (
	handleOpen  = "{{slipway:vault:"
	handleClose = "}}"
)

// Handle is the expression that stands, as a whole leaf, for leaf n of the list under a handle:
// "{{slipway:vault:HANDLE:N}}".
func Handle(handle string, n int) string {
	return handleOpen + handle + ":" + strconv.Itoa(n) + handleClose
}

// ParseHandle reads an expression that Handle has written.
func ParseHandle(leaf any) (handle string, n int, ok bool) {
	s, isText := leaf.(string)
	if !isText {
		return "", 0, false
	}
	s, opened := strings.CutPrefix(s, handleOpen)
	s, closed := strings.CutSuffix(s, handleClose)
	handle, index, found := strings.Cut(s, ":")
	n, err := strconv.Atoi(index)
	if !opened || !closed || !found || err != nil || n < 0 || len(handle) != 32 || strings.Trim(handle, "0123456789abcdef") != "" {
		return "", 0, false
	}
	return handle, n, true
}

// Concealed is a value with every handle expression in it masked: how it is recorded.
func Concealed(v any) any {
	return Leaves(v, func(leaf any) any {
		if _, _, ok := ParseHandle(leaf); ok {
			return Mask
		}
		return leaf
	})
}
