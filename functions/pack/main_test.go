package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestAnArchiveIsTheSameEveryTimeAndHoldsAnExecutableBootstrap(t *testing.T) {
	binary := bytes.Repeat([]byte("binary "), 1000)
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := archiveOf(b, binary); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Fatal("two archives of one binary differ")
	}
	z, err := zip.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if len(z.File) != 1 || z.File[0].Name != "bootstrap" || z.File[0].Mode().Perm() != 0o755 {
		t.Fatalf("the archive holds %v", z.File)
	}
	r, err := z.File[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, binary) {
		t.Fatalf("the bootstrap came back with %d bytes, %v", len(got), err)
	}
}

func TestAnArchiveThatGrowsTooLargeIsNotPacked(t *testing.T) {
	if err := small(largest - 1); err != nil {
		t.Error(err)
	}
	if err := small(largest); err == nil || !strings.Contains(err.Error(), "15.0 MB") {
		t.Errorf("the error is %v", err)
	}
}

// The clients of newer releases build tables of all their shapes before main, whether or not anybody calls them: with them
// the functions take twice as long to start. See docs/dependencies.md for which releases are held back and why.
func TestFunctionsLinkNoTablesOfShapesThatCanBeHadWithout(t *testing.T) {
	unavoidable := func(pkg string) bool {
		// The first four come with config, and are small; CloudWatch's are needed to speak the protocol of the emulators.
		return slices.Contains([]string{"signin", "sso", "ssooidc", "sts", "cloudwatch"}, pkg)
	}
	for _, name := range []string{"planner", "provisioner", "publisher", "janitor", "trigger"} {
		for _, pkg := range linked(t, name) {
			service, tables := strings.CutSuffix(pkg, "/schemas")
			if tables && !unavoidable(service) {
				t.Errorf("%s links the tables of shapes of %s", name, service)
			}
		}
	}
}

func TestTheTriggerLinksNoClientThatItDoesNotCall(t *testing.T) {
	var services []string
	for _, pkg := range linked(t, "trigger") {
		if !strings.Contains(pkg, "/") {
			services = append(services, pkg)
		}
	}
	if want := []string{"s3", "sfn", "signin", "sso", "ssooidc", "sts"}; !slices.Equal(services, want) {
		t.Errorf("it links %v, want %v", services, want)
	}
}

// linked lists what a function links of the SDK's services, sorted, below service/.
func linked(t *testing.T, function string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "../"+function).Output()
	if err != nil {
		t.Fatalf("listing what %s links: %v", function, err)
	}
	var pkgs []string
	for line := range strings.Lines(string(out)) {
		if pkg, ok := strings.CutPrefix(strings.TrimSpace(line), "github.com/aws/aws-sdk-go-v2/service/"); ok && !strings.HasPrefix(pkg, "internal/") {
			pkgs = append(pkgs, pkg)
		}
	}
	slices.Sort(pkgs)
	return pkgs
}
