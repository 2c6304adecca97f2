package doctor

import "testing"

func TestThePrincipalBehindASessionIsItsRole(t *testing.T) {
	for _, c := range []struct {
		caller, want string
		ok           bool
	}{
		{"arn:aws:sts::111122223333:assumed-role/Deploy/me", "arn:aws:iam::111122223333:role/Deploy", true},
		{"arn:aws-cn:iam::111122223333:user/team/me", "arn:aws-cn:iam::111122223333:user/team/me", true},
		{"arn:aws:iam::111122223333:root", "", false},
		{"nonsense", "", false},
	} {
		if got, ok := principal(c.caller); got != c.want || ok != c.ok {
			t.Errorf("%s: %q, %t", c.caller, got, ok)
		}
	}
	if partition("arn:aws-cn:iam::1:root") != "aws-cn" || partition("") != "aws" {
		t.Error("the partition is wrong")
	}
}
