//go:build emulators

package conformance

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
	"github.com/slipway-cdk/slipway/pkg/provider/services"
)

// TestMatrix runs every check of every case against the emulator, and compares what it measures with what the matrix says.
func TestMatrix(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	emulator := os.Getenv("SLIPWAY_TEST_EMULATOR")
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			known, err := readResults("results", c.Name)
			if err != nil {
				t.Fatal(err)
			}
			measured := map[string]string{}
			for _, check := range checks {
				t.Run(check.name, func(t *testing.T) {
					result := run(t, c, check, emulator)
					t.Logf("%-10s %-28s %-14s %s", emulator, c.Type, check.name, result)
					measured[check.name] = result
					if was := known[emulator][check.name]; was != result && !*update {
						t.Errorf("the matrix says %q: run with SLIPWAY_TEST_UPDATE=1", was)
					}
				})
			}
			if *update && len(measured) == len(checks) {
				known[emulator] = measured
				if err := known.write("results", c.Name); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// run makes a check and returns its cell. Where the case says that the emulator differs, the check has to fail, and is made
// again without what differs.
func run(t *testing.T, c Case, k check, emulator string) string {
	missing, err := attempt(t, c, k)
	because, properties := "", []string(nil)
	for _, d := range c.Differs {
		if d.Emulator == emulator && d.Check == k.name {
			because, properties = d.Because, d.Properties
		}
	}
	switch {
	case err == nil && because != "":
		t.Errorf("the case says that %s differs here (%s), and it does not", emulator, because)
		return pass
	case err == nil:
		return pass
	case because == "" && missing != "":
		t.Log(err)
		return "lacks " + missing
	case because == "":
		t.Error(err)
		return "fails"
	}
	t.Logf("as stated: %v", err)
	if len(properties) == 0 {
		return "differs: " + because
	}
	if missing, err = attempt(t, c.less(properties), k); err != nil {
		t.Errorf("without %s: %v %s", strings.Join(properties, ", "), err, missing)
		return "fails"
	}
	return fmt.Sprintf("passes without %s: %s", strings.Join(properties, ", "), because)
}

// attempt makes one check; once more when the emulator has broken a connection off on its own account.
func attempt(t *testing.T, c Case, k check) (missing string, err error) {
	for range 3 {
		var broken bool
		if missing, broken, err = once(t, c, k); err == nil || !broken {
			break
		}
	}
	return missing, err
}

// once makes one check with resources of its own. missing is the call that the emulator does not have, if it met one.
func once(t *testing.T, c Case, k check) (missing string, broken bool, err error) {
	l := &life{lab: newLab(t), c: c}
	defer func() {
		if err != nil {
			l.wire.Lose = nil
			l.leave()
		}
	}()
	if err = l.prepare(); err == nil {
		l.wire.Reset()
		err = k.run(l)
	} else if operation := new(smithy.OperationError); errors.As(err, &operation) && unimplemented(err) {
		return operation.OperationName, l.broken, err // of what the case needs
	}
	l.wire.Lose = nil
	missing, broken = missingCall(l.wire.Calls()), l.broken
	if err == nil {
		err = l.clear()
	}
	return missing, broken, err
}

func newLab(t *testing.T) *lab {
	cfg := emulators.Config(t)
	cfg.Credentials = inAccount()
	return labAt(t, cfg)
}

// account is that of all labs.
const account = "123456789012"

// inAccount are credentials of the account: MiniStack takes the key for it.
func inAccount() aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(account, "testing", "")
}

// labAt is a lab whose clients have a configuration.
func labAt(t *testing.T, cfg aws.Config) *lab {
	t.Helper()
	var seed [4]byte
	_, _ = rand.Read(seed[:]) // never fails
	l := &lab{
		clock: clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), wire: new(direct.Recorder),
		account: account, region: "us-east-1", seed: hex.EncodeToString(seed[:]),
		// Emulators let some operations take a while of their own: the clock of the test is far ahead of them.
		breathe: func(d time.Duration) { time.Sleep(min(d/50, 100*time.Millisecond)) },
	}
	l.wire.Heard = func(c direct.WireCall) { l.broken = l.broken || c.Answer != nil && connectionBroken(c.Answer) }
	cfg.APIOptions = append(cfg.APIOptions, func(s *middleware.Stack) error { return l.wire.Middleware(s) })
	l.open = func() map[string]provider.Provider {
		return services.Providers(direct.Env{Clock: l.clock, Config: func(_, region string) aws.Config {
			own := cfg.Copy()
			own.Region = region
			return own
		}})
	}
	l.plain = plain(t, cfg)
	return l
}
