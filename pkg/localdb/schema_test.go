package localdb

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
)

func TestAnOlderFileIsBroughtUpToDate(t *testing.T) {
	for have := range len(schema) + 1 {
		path := filepath.Join(t.TempDir(), fmt.Sprint(have, ".db"))
		db, err := sql.Open("sqlite", dsn(path))
		if err != nil {
			t.Fatal(err)
		}
		for i := range have {
			if _, err := db.Exec(schema[i]); err != nil {
				t.Fatal(err)
			}
		}
		if have > 0 {
			if _, err := db.Exec("INSERT INTO heads VALUES ('a', 'r', 'n', 'kept')"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Exec(fmt.Sprint("PRAGMA user_version = ", have)); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if db, err = Open(path); err != nil {
			t.Fatalf("from version %d: %v", have, err)
		}
		var version, rows int
		if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil || version != len(schema) {
			t.Errorf("from version %d: version is %d, %v", have, version, err)
		}
		if err := db.QueryRow("SELECT count(*) FROM heads").Scan(&rows); err != nil || rows != min(have, 1) {
			t.Errorf("from version %d: %d rows were kept, %v", have, rows, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
