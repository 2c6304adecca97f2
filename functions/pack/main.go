// Pack builds functions for Lambda and packs each into a zip archive of its own: one file, bootstrap, that the
// provided.al2023 runtime starts on arm64. The archives of one source tree and one Go release are the same
// byte for byte, on every machine: a function is deployed again only when it has changed.
//
//	go run ./functions/pack -out dist planner provisioner
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// entryTime is the time of every entry: the earliest that a zip archive can hold.
var entryTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func main() {
	out := flag.String("out", "dist", "directory for the archives")
	arch := flag.String("arch", "arm64", "GOARCH of the functions")
	flag.Parse()
	for _, name := range flag.Args() {
		if err := pack(name, *arch, *out); err != nil {
			fmt.Fprintf(os.Stderr, "packing %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

func pack(name, arch, out string) error {
	dir, err := os.MkdirTemp("", "slipway-pack-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bootstrap := filepath.Join(dir, "bootstrap")
	// lambda.norpc leaves out the RPC server of the runtime that provided.al2023 has replaced. The version
	// control stamp would make an archive differ for every commit.
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags", "-s -w -buildid=", "-o", bootstrap, "./functions/"+name)
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building it: %w", err)
	}
	binary, err := os.ReadFile(bootstrap)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := archiveOf(&archive, binary); err != nil {
		return fmt.Errorf("archiving it: %w", err)
	}
	if err := small(archive.Len()); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	file := filepath.Join(out, name+".zip")
	// A reader sees the old archive or the new one, never half of one.
	if err := os.WriteFile(file+".tmp", archive.Bytes(), 0o644); err != nil {
		return err
	}
	if err := os.Rename(file+".tmp", file); err != nil {
		return err
	}
	sum := sha256.Sum256(archive.Bytes())
	fmt.Printf("%-28s %5.1f MB  binary %5.1f MB  sha256 %s\n", file, megabytes(archive.Len()), megabytes(len(binary)), hex.EncodeToString(sum[:])[:16])
	return nil
}

// largest is the largest that an archive may be, in bytes: what is larger takes longer to start, and has linked
// something that a function does not need.
const largest = 15_000_000

func small(n int) error {
	if n < largest {
		return nil
	}
	return fmt.Errorf("the archive has %.1f MB, and %.1f are too many: see with `go list -deps` what the function links", megabytes(n), megabytes(largest))
}

func megabytes(n int) float64 { return float64(n) / 1e6 }

// archiveOf writes the archive of a bootstrap binary.
func archiveOf(w io.Writer, binary []byte) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate, Modified: entryTime}
	header.SetMode(0o755)
	entry, err := z.CreateHeader(header)
	if err != nil {
		return err
	}
	if _, err := entry.Write(binary); err != nil {
		return err
	}
	return z.Close()
}
