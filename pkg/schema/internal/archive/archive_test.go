package archive

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func sample(n int) map[string][]byte {
	docs := map[string][]byte{"empty": {}}
	for i := range n {
		docs[fmt.Sprintf("Doc::%03d", i)] = []byte(strings.Repeat(fmt.Sprintf(`{"number":%d}`, i), 1+i*7%400))
	}
	return docs
}

func TestEveryDocumentComesBack(t *testing.T) {
	docs := sample(300)
	data, err := Pack(`{"made":"today"}`, docs)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	if r.Metadata != `{"made":"today"}` || len(r.Names()) != len(docs) || len(r.starts) < 3 {
		t.Errorf("metadata %q, %d names, %d chunks", r.Metadata, len(r.Names()), len(r.starts)-1)
	}
	var all sync.WaitGroup
	for name, want := range docs {
		all.Go(func() {
			if got, found, err := r.Read(name); err != nil || !found || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes, found %v, error %v", name, len(got), found, err)
			}
		})
	}
	all.Wait()
	if _, found, err := r.Read("Doc::999"); found || err != nil {
		t.Errorf("an absent document: found %v, error %v", found, err)
	}
}

func TestTheSameDocumentsPackToTheSameBytes(t *testing.T) {
	one, err1 := Pack("m", sample(50))
	two, err2 := Pack("m", sample(50))
	if err1 != nil || err2 != nil || !bytes.Equal(one, two) {
		t.Errorf("packed bytes differ (%v, %v)", err1, err2)
	}
}

func TestNamesAndMetadataThatBreakTheHeaderAreRefused(t *testing.T) {
	if _, err := Pack("two\nlines", nil); err == nil {
		t.Error("metadata of two lines was packed")
	}
	if _, err := Pack("", map[string][]byte{"a\tb": nil}); err == nil {
		t.Error("a name with a tab was packed")
	}
}

func FuzzOpenNeverPanics(f *testing.F) {
	data, err := Pack("m", sample(3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(magic + "\x00\x00\x00\x00"))
	f.Add([]byte(magic + "\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Open(data)
		if err != nil {
			return
		}
		for _, name := range r.Names() {
			if _, _, err := r.Read(name); err != nil && !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
