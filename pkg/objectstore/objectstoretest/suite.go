// Package objectstoretest is the conformance suite of objectstore.Store: every implementation runs it.
package objectstoretest

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// Run checks everything that the contract of objectstore.Store promises. open returns an empty store; it is
// called once per case.
func Run(t *testing.T, open func(t *testing.T) objectstore.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, objectstore.Store)
	}{
		{"an absent object is not found", absent},
		{"what is put can be read", putAndRead},
		{"bodies come back byte by byte", bodies},
		{"keys keep every character", oddKeys},
		{"an unconditional put overwrites and may be repeated", overwrite},
		{"the ETag follows the content", etags},
		{"IfNoneMatch puts only where nothing stands", ifNoneMatch},
		{"IfMatch puts only over the version that was read", ifMatch},
		{"IfMatch on an absent key is not found", ifMatchAbsent},
		{"conditions that exclude each other are refused", bothConditions},
		{"delete removes, and is idempotent without a condition", deletes},
		{"a conditional delete removes only the version that was read", conditionalDelete},
		{"delete refuses IfNoneMatch", deleteIfNoneMatch},
		{"a key can be used again after a delete", reuse},
		{"list returns the keys with a prefix in byte order", list},
		{"list of an empty prefix returns everything", listAll},
		{"list pages through more than a thousand keys", listMany},
		{"a refused write changes nothing", refusedChangesNothing},
		{"of fifty concurrent first writes one wins", raceCreate},
		{"of fifty concurrent updates of one version one wins", raceUpdate},
		{"concurrent increments lose nothing", increments},
		{"of a concurrent delete and update of one version one wins", raceDelete},
		{"a returned body is the caller's own", ownBody},
		{"an ended context ends the call", ended},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func ctx() context.Context { return context.Background() }

func put(t *testing.T, s objectstore.Store, key, body string, cond objectstore.Condition) string {
	t.Helper()
	etag, err := s.Put(ctx(), key, []byte(body), cond)
	if err != nil {
		t.Fatalf("Put(%q): %v", key, err)
	}
	return etag
}

func wantBody(t *testing.T, s objectstore.Store, key, body string) objectstore.Object {
	t.Helper()
	o, err := s.Get(ctx(), key)
	if err != nil {
		t.Fatalf("Get(%q): %v", key, err)
	}
	if string(o.Body) != body {
		t.Fatalf("Get(%q) = %q, want %q", key, o.Body, body)
	}
	return o
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
	for _, other := range []error{objectstore.ErrNotFound, objectstore.ErrPrecondition} {
		if !errors.Is(want, other) && errors.Is(err, other) {
			t.Fatalf("error %v is both %v and %v", err, want, other)
		}
	}
}

func absent(t *testing.T, s objectstore.Store) {
	_, err := s.Get(ctx(), "a/b.json")
	wantErr(t, err, objectstore.ErrNotFound)
	_, err = s.Head(ctx(), "a/b.json")
	wantErr(t, err, objectstore.ErrNotFound)
	infos, err := s.List(ctx(), "a/")
	if err != nil || len(infos) != 0 {
		t.Fatalf("List = %v, %v, want nothing", infos, err)
	}
}

func putAndRead(t *testing.T, s objectstore.Store) {
	before := time.Now().Add(-5 * time.Minute)
	etag := put(t, s, "a/b.json", "hello", objectstore.Condition{})
	o := wantBody(t, s, "a/b.json", "hello")
	want := objectstore.Info{Key: "a/b.json", ETag: etag, Size: 5, LastModified: o.LastModified}
	if o.Info != want {
		t.Fatalf("Get describes %+v, want %+v", o.Info, want)
	}
	if o.LastModified.Before(before) {
		t.Fatalf("LastModified is %v", o.LastModified)
	}
	h, err := s.Head(ctx(), "a/b.json")
	if err != nil || h.ETag != etag || h.Size != 5 || h.Key != "a/b.json" {
		t.Fatalf("Head = %+v, %v", h, err)
	}
	infos, err := s.List(ctx(), "a/")
	if err != nil || len(infos) != 1 || infos[0].ETag != etag || infos[0].Size != 5 || infos[0].Key != "a/b.json" {
		t.Fatalf("List = %+v, %v", infos, err)
	}
	_, err = s.Get(ctx(), "a/b.jso")
	wantErr(t, err, objectstore.ErrNotFound)
}

func bodies(t *testing.T, s objectstore.Store) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	large := bytes.Repeat([]byte("0123456789abcde\n"), 5<<20/16)
	for name, body := range map[string][]byte{
		"empty": {}, "nil": nil, "binary": every, "newline": []byte("\n"), "nul": {0}, "large": large,
		"utf8": []byte("é <&> \u2028"),
	} {
		etag, err := s.Put(ctx(), "body/"+name, body, objectstore.Condition{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		o, err := s.Get(ctx(), "body/"+name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(o.Body, body) || o.Size != int64(len(body)) || o.ETag != etag {
			t.Fatalf("%s: %d bytes came back as %d (size %d)", name, len(body), len(o.Body), o.Size)
		}
	}
}

// odd are keys that are legal in S3 and that a careless implementation confuses.
var odd = []string{
	"a", "A", "a/", "a//b", "a b", "a+b", "a%20b", "a%2Fb", "a&b=c", "a?b#c", "a'b", `a"b`, `a\b`, "a~b", "a*b", "a_b", "a%",
	"Parent~Kid~x/us-east-1/state.json", "ünï/é", "e\u0301", "日本語/鍵", "🚢", "<&>", "a:b@c,d;e=f", "(a)[b]{c}|^`",
	"with space /end ", strings.Repeat("k", 900),
}

func oddKeys(t *testing.T, s objectstore.Store) {
	for _, key := range odd {
		put(t, s, key, "body of "+key, objectstore.Condition{IfNoneMatch: true})
	}
	for _, key := range odd {
		wantBody(t, s, key, "body of "+key)
	}
	for i, key := range odd {
		if i%2 == 0 {
			if err := s.Delete(ctx(), key, objectstore.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, key := range odd {
		_, err := s.Head(ctx(), key)
		if gone := errors.Is(err, objectstore.ErrNotFound); gone != (i%2 == 0) {
			t.Fatalf("key %q: %v", key, err)
		}
	}
}

func overwrite(t *testing.T, s objectstore.Store) {
	first := put(t, s, "k", "one", objectstore.Condition{})
	if again := put(t, s, "k", "one", objectstore.Condition{}); again == "" {
		t.Fatal("a repeated put returned no ETag")
	}
	second := put(t, s, "k", "two", objectstore.Condition{})
	if first == second {
		t.Fatalf("the ETag %s stayed when the content changed", first)
	}
	wantBody(t, s, "k", "two")
}

func etags(t *testing.T, s objectstore.Store) {
	a := put(t, s, "a", "same", objectstore.Condition{})
	if len(a) < 3 || a[0] != '"' || a[len(a)-1] != '"' {
		t.Fatalf("the ETag %s has no quotes", a)
	}
	sum := md5.Sum([]byte("same"))
	if plain := `"` + hex.EncodeToString(sum[:]) + `"`; a != plain {
		t.Logf("the ETag is not the MD5 of the content (%s, want %s): allowed, a bucket with SSE-KMS is so", a, plain)
	}
	if b := put(t, s, "a", "other", objectstore.Condition{}); b == a {
		t.Fatal("another content has the same ETag")
	}
}

func ifNoneMatch(t *testing.T, s objectstore.Store) {
	put(t, s, "k", "one", objectstore.Condition{IfNoneMatch: true})
	_, err := s.Put(ctx(), "k", []byte("two"), objectstore.Condition{IfNoneMatch: true})
	wantErr(t, err, objectstore.ErrPrecondition)
	_, err = s.Put(ctx(), "k", []byte("one"), objectstore.Condition{IfNoneMatch: true})
	wantErr(t, err, objectstore.ErrPrecondition)
	wantBody(t, s, "k", "one")
	put(t, s, "k2", "", objectstore.Condition{IfNoneMatch: true})
	_, err = s.Put(ctx(), "k2", []byte("x"), objectstore.Condition{IfNoneMatch: true})
	wantErr(t, err, objectstore.ErrPrecondition)
}

func ifMatch(t *testing.T, s objectstore.Store) {
	one := put(t, s, "k", "one", objectstore.Condition{})
	two := put(t, s, "k", "two", objectstore.Condition{IfMatch: one})
	_, err := s.Put(ctx(), "k", []byte("three"), objectstore.Condition{IfMatch: one})
	wantErr(t, err, objectstore.ErrPrecondition)
	_, err = s.Put(ctx(), "k", []byte("three"), objectstore.Condition{IfMatch: `"0123456789abcdef0123456789abcdef"`})
	wantErr(t, err, objectstore.ErrPrecondition)
	wantBody(t, s, "k", "two")
	put(t, s, "k", "three", objectstore.Condition{IfMatch: two})
	wantBody(t, s, "k", "three")
}

func ifMatchAbsent(t *testing.T, s objectstore.Store) {
	_, err := s.Put(ctx(), "k", []byte("x"), objectstore.Condition{IfMatch: `"d41d8cd98f00b204e9800998ecf8427e"`})
	wantErr(t, err, objectstore.ErrNotFound)
	_, err = s.Get(ctx(), "k")
	wantErr(t, err, objectstore.ErrNotFound)
	etag := put(t, s, "k", "x", objectstore.Condition{})
	if err := s.Delete(ctx(), "k", objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Put(ctx(), "k", []byte("y"), objectstore.Condition{IfMatch: etag})
	wantErr(t, err, objectstore.ErrNotFound)
}

func bothConditions(t *testing.T, s objectstore.Store) {
	etag := put(t, s, "k", "x", objectstore.Condition{})
	if _, err := s.Put(ctx(), "k", []byte("y"), objectstore.Condition{IfNoneMatch: true, IfMatch: etag}); err == nil {
		t.Fatal("IfNoneMatch together with IfMatch was accepted")
	}
	wantBody(t, s, "k", "x")
}

func deletes(t *testing.T, s objectstore.Store) {
	put(t, s, "a/1", "x", objectstore.Condition{})
	put(t, s, "a/2", "y", objectstore.Condition{})
	for range 2 {
		if err := s.Delete(ctx(), "a/1", objectstore.Condition{}); err != nil {
			t.Fatal(err)
		}
		_, err := s.Get(ctx(), "a/1")
		wantErr(t, err, objectstore.ErrNotFound)
	}
	wantKeys(t, s, "a/", "a/2")
}

func conditionalDelete(t *testing.T, s objectstore.Store) {
	one := put(t, s, "k", "one", objectstore.Condition{})
	two := put(t, s, "k", "two", objectstore.Condition{})
	wantErr(t, s.Delete(ctx(), "k", objectstore.Condition{IfMatch: one}), objectstore.ErrPrecondition)
	wantBody(t, s, "k", "two")
	if err := s.Delete(ctx(), "k", objectstore.Condition{IfMatch: two}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Get(ctx(), "k")
	wantErr(t, err, objectstore.ErrNotFound)
	wantErr(t, s.Delete(ctx(), "k", objectstore.Condition{IfMatch: two}), objectstore.ErrNotFound)
}

func deleteIfNoneMatch(t *testing.T, s objectstore.Store) {
	put(t, s, "k", "x", objectstore.Condition{})
	for _, key := range []string{"k", "absent"} {
		if err := s.Delete(ctx(), key, objectstore.Condition{IfNoneMatch: true}); err == nil {
			t.Fatalf("deleting %s with IfNoneMatch was accepted", key)
		}
	}
	wantBody(t, s, "k", "x")
}

func reuse(t *testing.T, s objectstore.Store) {
	put(t, s, "k", "x", objectstore.Condition{IfNoneMatch: true})
	if err := s.Delete(ctx(), "k", objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
	put(t, s, "k", "y", objectstore.Condition{IfNoneMatch: true})
	wantBody(t, s, "k", "y")
}

func wantKeys(t *testing.T, s objectstore.Store, prefix string, want ...string) {
	t.Helper()
	infos, err := s.List(ctx(), prefix)
	if err != nil {
		t.Fatalf("List(%q): %v", prefix, err)
	}
	got := make([]string, 0, len(infos))
	for _, i := range infos {
		got = append(got, i.Key)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("List(%q) = %q, want %q", prefix, got, want)
	}
}

func list(t *testing.T, s objectstore.Store) {
	for _, k := range []string{
		"p/b", "p/a", "p/a/2", "p/a/10", "p/a/1", "p/A", "p/é", "p/~", "p/%", "p/_", "p", "q/a", "p0", "p/", "P/a",
		"p_/a", "p%/a", "p*/a", "日/a", "日", "日本", "🚢/a",
	} {
		put(t, s, k, "body", objectstore.Condition{})
	}
	wantKeys(t, s, "p/", "p/", "p/%", "p/A", "p/_", "p/a", "p/a/1", "p/a/10", "p/a/2", "p/b", "p/~", "p/é")
	wantKeys(t, s, "p/a", "p/a", "p/a/1", "p/a/10", "p/a/2")
	wantKeys(t, s, "p/a/", "p/a/1", "p/a/10", "p/a/2")
	wantKeys(t, s, "p/a/1", "p/a/1", "p/a/10")
	wantKeys(t, s, "p_", "p_/a")
	wantKeys(t, s, "p%", "p%/a")
	wantKeys(t, s, "p*", "p*/a")
	wantKeys(t, s, "P", "P/a")
	wantKeys(t, s, "日", "日", "日/a", "日本")
	wantKeys(t, s, "🚢", "🚢/a")
	wantKeys(t, s, "r")
	wantKeys(t, s, "p/a/3")
}

func listAll(t *testing.T, s objectstore.Store) {
	keys := slices.Clone(odd)
	for _, k := range keys {
		put(t, s, k, "", objectstore.Condition{})
	}
	sort.Strings(keys)
	wantKeys(t, s, "", keys...)
}

func listMany(t *testing.T, s objectstore.Store) {
	const n = 1205
	want := make([]string, n)
	var wg sync.WaitGroup
	var failed sync.Map
	slots := make(chan struct{}, 16)
	for i := range n {
		want[i] = fmt.Sprintf("many/%04d", i)
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			if _, err := s.Put(ctx(), want[i], []byte("x"), objectstore.Condition{}); err != nil {
				failed.Store(want[i], err)
			}
		}()
	}
	wg.Wait()
	failed.Range(func(k, v any) bool { t.Errorf("Put(%v): %v", k, v); return true })
	wantKeys(t, s, "many/", want...)
}

func refusedChangesNothing(t *testing.T, s objectstore.Store) {
	put(t, s, "k", "one", objectstore.Condition{})
	before := wantBody(t, s, "k", "one")
	_, err := s.Put(ctx(), "k", []byte("two"), objectstore.Condition{IfNoneMatch: true})
	wantErr(t, err, objectstore.ErrPrecondition)
	_, err = s.Put(ctx(), "k", []byte("two"), objectstore.Condition{IfMatch: `"no"`})
	wantErr(t, err, objectstore.ErrPrecondition)
	wantErr(t, s.Delete(ctx(), "k", objectstore.Condition{IfMatch: `"no"`}), objectstore.ErrPrecondition)
	if after := wantBody(t, s, "k", "one"); after.Info != before.Info {
		t.Fatalf("the object was %+v and is %+v", before.Info, after.Info)
	}
}
