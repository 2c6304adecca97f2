package localdb_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/localdb"
)

func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := localdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestOpenConfiguresTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "dir", "slipway.db")
	db := open(t, path)
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "1", "busy_timeout": "30000", "foreign_keys": "1",
	} {
		var got string
		if err := db.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v, want %q", pragma, got, err, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if info, err = os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("mode of the directory %v, %v", info.Mode(), err)
	}
}

func TestAFileOfANewerSlipwayIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.db")
	db := open(t, path)
	if _, err := db.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	_, err := localdb.Open(path)
	if err == nil || !strings.Contains(err.Error(), "upgrade Slipway") {
		t.Fatalf("error is %v", err)
	}
}

func TestAFileThatIsNoDatabaseIsRefusedAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if db, err := localdb.Open(path); err == nil {
		_ = db.Close()
		t.Fatal("it was opened")
	}
	if got, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(got), "not a database") {
		t.Fatalf("the file is now %.20q, %v", got, err)
	}
}

func TestManyCanOpenANewFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.db")
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			db, err := localdb.Open(path)
			if err == nil {
				_, err = db.Exec("INSERT INTO heads (account, region, name, run_id) VALUES ('a', 'r', ?, 'x')", fmt.Sprint(i))
				err = errors.Join(err, db.Close())
			}
			if err != nil {
				t.Errorf("opener %d: %v", i, err)
			}
		}()
	}
	wg.Wait()
	var n int
	if err := open(t, path).QueryRow("SELECT count(*) FROM heads").Scan(&n); err != nil || n != 12 {
		t.Fatalf("%d rows, %v", n, err)
	}
}

const (
	processes  = 4
	increments = 100
)

// TestMain doubles as the other processes of TestProcessesShareTheFile.
func TestMain(m *testing.M) {
	if path := os.Getenv("LOCALDB_TEST_INCREMENT"); path != "" {
		if err := increment(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// increment reads and then writes in one transaction: only IMMEDIATE makes that safe.
func increment(path string) error {
	ctx := context.Background()
	db, err := localdb.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	for range increments {
		err := localdb.Retry(ctx, func() error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			var n int
			if err := tx.QueryRow("SELECT size FROM objects WHERE key = x'00'").Scan(&n); err != nil {
				return err
			}
			if _, err := tx.Exec("UPDATE objects SET size = ? WHERE key = x'00'", n+1); err != nil {
				return err
			}
			return tx.Commit()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func TestProcessesShareTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.db")
	db := open(t, path)
	if _, err := db.Exec("INSERT INTO objects VALUES (x'00', '', 0, 0, '')"); err != nil {
		t.Fatal(err)
	}
	type child struct {
		cmd *exec.Cmd
		in  interface{ Write([]byte) (int, error) }
	}
	var children []child
	for range processes {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "LOCALDB_TEST_INCREMENT="+path)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		children = append(children, child{cmd, in})
	}
	for _, c := range children {
		if _, err := c.in.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range children {
		if err := c.cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := db.QueryRow("SELECT size FROM objects WHERE key = x'00'").Scan(&n); err != nil || n != processes*increments {
		t.Fatalf("counted to %d, %v, want %d", n, err, processes*increments)
	}
}

func TestRetryRepeatsOnlyABusyDatabase(t *testing.T) {
	calls := 0
	boom := errors.New("boom")
	if err := localdb.Retry(t.Context(), func() error { calls++; return boom }); !errors.Is(err, boom) || calls != 1 {
		t.Fatalf("%d calls, %v", calls, err)
	}
	path := filepath.Join(t.TempDir(), "slipway.db")
	holder, waiter := open(t, path), open(t, path)
	if _, err := waiter.Exec("PRAGMA busy_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	tx, err := holder.Begin()
	if err != nil {
		t.Fatal(err)
	}
	calls = 0
	err = localdb.Retry(t.Context(), func() error {
		if calls++; calls == 3 {
			if err := tx.Rollback(); err != nil {
				return err
			}
		}
		_, err := waiter.Exec("INSERT INTO heads VALUES ('a', 'r', 'n', 'x')")
		if calls < 3 && !localdb.IsBusy(err) {
			return fmt.Errorf("call %d beside a writer: %w", calls, err)
		}
		return err
	})
	if err != nil || calls != 3 {
		t.Fatalf("%d calls, %v", calls, err)
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.db")
	holder, waiter := open(t, path), open(t, path)
	if _, err := waiter.Exec("PRAGMA busy_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	tx, err := holder.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err = localdb.Retry(ctx, func() error {
		if calls++; calls == 2 {
			cancel()
		}
		_, err := waiter.Exec("INSERT INTO heads VALUES ('a', 'r', 'n', 'x')")
		return err
	})
	if !errors.Is(err, context.Canceled) || !localdb.IsBusy(err) {
		t.Fatalf("error is %v", err)
	}
}

func TestADatabaseIsForItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "file.db")
	if err := localdb.Private(path); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", filepath.Base(name), got, want)
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := localdb.Private(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("a file that was there has another mode now: %v %v", info.Mode(), err)
	}
}
