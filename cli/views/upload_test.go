package views

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestALogIsToldOfALargeUploadNowAndThen(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	s := &Streams{Err: Stream{Writer: &out}}
	sent, end := s.Upload(func() time.Time { return now })
	const total = 64_000_000
	for second := range 17 {
		now = time.Unix(int64(second), 0)
		sent(int64(second)*4_000_000, total)
		sent(int64(second)*4_000_000, total)
		sent(1, total) // a call that was overtaken
	}
	end()
	want := "Uploading 64 MB…\nUploading 64 MB: 31 % are there\nUploading 64 MB: 62 % are there\nUploading 64 MB: 93 % are there\nUploading 64 MB: 100 % are there\n"
	if out.String() != want {
		t.Errorf("it reads\n%s", out.String())
	}
}

func TestALogIsNotToldOfASmallUpload(t *testing.T) {
	var out bytes.Buffer
	s := &Streams{Err: Stream{Writer: &out}}
	sent, end := s.Upload(time.Now)
	sent(0, 100_000)
	sent(100_000, 100_000)
	end()
	if out.Len() > 0 {
		t.Errorf("it reads %q", out.String())
	}
}

func TestATerminalShowsAnUploadInPlaceAndKeepsNothing(t *testing.T) {
	var out bytes.Buffer
	s := &Streams{Live: true, Err: Stream{Writer: &out, Terminal: true, Size: func() (int, int) { return 30, 8 }}}
	sent, end := s.Upload(time.Now)
	sent(0, 5_000_000)
	sent(2_500_000, 5_000_000)
	end()
	if want := "\rUploading 5.0 MB…\x1b[K\rUploading 5.0 MB: 50 % are t…\x1b[K\r\x1b[K"; out.String() != want {
		t.Errorf("it writes %q", out.String())
	}
	if strings.Contains(out.String(), "\n") {
		t.Error("it scrolls")
	}
	out.Reset()
	_, end = s.Upload(time.Now)
	end()
	if out.Len() > 0 {
		t.Errorf("nothing was uploaded, and it writes %q", out.String())
	}
}

func TestSizesAreWrittenForPeople(t *testing.T) {
	for n, want := range map[int64]string{
		-1: "0 B", 0: "0 B", 999: "999 B", 1000: "1.0 kB", 123_456: "123 kB", 16 << 20: "17 MB", 2_345_000_000: "2.3 GB",
	} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
