package main

import (
	"archive/zip"
	"bytes"
	"io"
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
