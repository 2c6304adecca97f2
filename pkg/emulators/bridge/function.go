package bridge

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Function is what Lambda knows of a function with a custom runtime.
type Function struct {
	Name string `json:"name"`
	// ARN is the function's, its region and account are those that the process sees.
	ARN string `json:"arn"`
	// Version is "$LATEST" when empty.
	Version string `json:"version,omitempty"`
	Handler string `json:"handler,omitempty"`
	// MemoryMB is only told to the process: nothing limits it. 128 when 0.
	MemoryMB int `json:"memory,omitempty"`
	// TimeoutSeconds is 3 when 0, as in Lambda.
	TimeoutSeconds int `json:"timeout,omitempty"`
	// Environment wins over what the bridge sets itself, except the address of the Runtime API and the endpoint.
	Environment map[string]string `json:"environment,omitempty"`
	// Code is the SHA-256 of the function's archive, in hex. The archive is added by AddCode.
	Code string `json:"code"`
}

func (f Function) timeout() time.Duration {
	if f.TimeoutSeconds == 0 {
		return 3 * time.Second
	}
	return time.Duration(f.TimeoutSeconds) * time.Second
}

func (f Function) version() string {
	if f.Version == "" {
		return "$LATEST"
	}
	return f.Version
}

// place returns the region and account of an ARN: arn:aws:lambda:REGION:ACCOUNT:function:NAME.
func (f Function) place() (region, account string) {
	parts := strings.Split(f.ARN, ":")
	if len(parts) < 6 {
		return "us-east-1", "000000000000"
	}
	return parts[3], parts[4]
}

// definition tells two definitions apart: a process serves one.
func (f Function) definition() string {
	b, err := json.Marshal(f)
	if err != nil {
		panic(err) // strings and numbers
	}
	return digestOf(b)
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ErrNoCode says that a function's archive has not been added.
var ErrNoCode = errors.New("the function's code is not known")

// maxUnpacked is the most that an archive may hold, in bytes
// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
const maxUnpacked = 250 << 20

// codes are the unpacked archives, each below dir by its digest.
type codes struct {
	dir string

	mu   sync.Mutex
	have map[string]bool
}

func (c *codes) path(digest string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.have[digest] {
		return "", ErrNoCode
	}
	return filepath.Join(c.dir, digest), nil
}

// add unpacks an archive and returns its digest.
func (c *codes) add(archive []byte) (string, error) {
	digest := digestOf(archive)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.have[digest] {
		return digest, nil
	}
	if err := unpack(archive, filepath.Join(c.dir, digest)); err != nil {
		return "", fmt.Errorf("unpacking the code: %w", err)
	}
	if c.have == nil {
		c.have = map[string]bool{}
	}
	c.have[digest] = true
	return digest, nil
}

func unpack(archive []byte, dir string) error {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return err
	}
	left := int64(maxUnpacked)
	for _, f := range r.File {
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("the entry %q leaves the archive", f.Name)
		}
		target := filepath.Join(dir, f.Name)
		if f.FileInfo().IsDir() {
			if err := os.MkdirAll(target, 0o755); err != nil {
				return err
			}
			continue
		}
		n, err := unpackFile(f, target, left)
		if err != nil {
			return fmt.Errorf("the entry %q: %w", f.Name, err)
		}
		left -= n
	}
	return nil
}

func unpackFile(f *zip.File, target string, limit int64) (int64, error) {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return 0, err
	}
	in, err := f.Open()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.OpenFile(target, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, f.Mode().Perm()|0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(in, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("the code is larger than %d bytes", int64(maxUnpacked))
	}
	return n, errors.Join(err, out.Close())
}
