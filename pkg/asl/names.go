package asl

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// arn is the ARN of a state machine.
type arn struct{ partition, region, account, machine string }

// parseMachineARN reads arn:PARTITION:states:REGION:ACCOUNT:stateMachine:NAME.
func parseMachineARN(s string) (arn, error) {
	parts := strings.Split(s, ":")
	if len(parts) != 7 || parts[0] != "arn" || parts[2] != "states" || parts[5] != "stateMachine" || parts[6] == "" {
		return arn{}, &APIError{CodeInvalidArn, fmt.Sprintf("Invalid Arn: '%s' is not the ARN of a state machine", s)}
	}
	return arn{partition: parts[1], region: parts[3], account: parts[4], machine: parts[6]}, nil
}

func (a arn) execution(name string) string {
	return fmt.Sprintf("arn:%s:states:%s:%s:execution:%s:%s", a.partition, a.region, a.account, a.machine, name)
}

// checkName refuses what StartExecution refuses as the name of an execution: white space, brackets, wildcards,
// special and control characters, and more than 80 characters
// (https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html).
func checkName(name string) error {
	invalid := !utf8.ValidString(name) || name == "" || utf8.RuneCountInString(name) > maxNameLength ||
		strings.ContainsFunc(name, func(r rune) bool {
			return r <= 0x20 || r >= 0x7f && r <= 0x9f || r == 0xfffe || r == 0xffff || strings.ContainsRune("<>{}[]?*\"#%\\^|~`$&,;:/", r)
		})
	if invalid {
		return &APIError{CodeInvalidName, fmt.Sprintf("Invalid Name: %q", name)}
	}
	return nil
}
