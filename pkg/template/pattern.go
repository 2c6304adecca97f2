package template

import (
	"fmt"
	"regexp"
	"time"

	"github.com/dlclark/regexp2"
)

// patternTimeout bounds one match of a pattern that needs backtracking.
const patternTimeout = 2 * time.Second

// pattern is a compiled AllowedPattern.
type pattern interface {
	// match reports whether the pattern matches the whole text; an error means that it took too long.
	match(text string) (bool, error)
}

type linearPattern struct{ *regexp.Regexp }

func (p linearPattern) match(text string) (bool, error) { return p.MatchString(text), nil }

type backtrackingPattern struct{ *regexp2.Regexp }

func (p backtrackingPattern) match(text string) (bool, error) { return p.MatchString(text) }

// compilePattern compiles an AllowedPattern, which is a Java regular expression that must match the whole
// value (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-template-regexes.html).
// Go's engine, which can't be made to hang, does it where it can; look-around and back references, usual in
// password rules, need a backtracking engine, which is given a time limit.
func compilePattern(source string) (pattern, error) {
	if re, err := regexp.Compile(`\A(?:` + source + `)\z`); err == nil {
		return linearPattern{re}, nil
	}
	re, err := regexp2.Compile(`\A(?:`+source+`)\z`, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("compiling the pattern: %w", err)
	}
	re.MatchTimeout = patternTimeout
	return backtrackingPattern{re}, nil
}
