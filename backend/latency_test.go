package backend

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gatebench/server"
)

func constantly(d time.Duration) Latency { return Latency(d.String()) }

func TestLatencyIsReadAsWritten(t *testing.T) {
	for text, want := range map[string][]time.Duration{
		"":                        ms(0),
		"0s":                      ms(0),
		"20ms":                    ms(20),
		"5ms:2, 20ms:1":           ms(5, 5, 20),
		"5ms:90,20ms:9 , 200ms:1": append(append(slices.Repeat(ms(5), 90), slices.Repeat(ms(20), 9)...), 200*time.Millisecond),
		"1ms:50, 2ms:25, 3ms:25":  ms(1, 1, 2, 3), // as few cards as will do
		"5ms:1":                   ms(5),
		"0s:99, 50ms:1":           append(slices.Repeat(ms(0), 99), 50*time.Millisecond),
	} {
		var l Latency
		if err := l.UnmarshalText([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, _ := cards(string(l)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for _, bad := range []string{"5", "fast", "-5ms", "5ms:", "5ms:0", "5ms:-1", "5ms:1.5", "5:90", "5ms:90;20ms:10", "5ms:1,", "5ms:99999, 1ms:100001", ":"} {
		var l Latency
		if err := l.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a latency", bad)
		}
	}
}

// Every whole deck holds its distribution exactly, in an order that only the seed
// decides and that changes from deck to deck.
func TestDecksAreDealtWhole(t *testing.T) {
	const text = "5ms:90, 20ms:9, 200ms:1"
	deal := func(seed uint64) (decks [][]time.Duration) {
		d, err := newDeck(text, seed)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			var one []time.Duration
			for range 100 {
				one = append(one, d.Deal())
			}
			decks = append(decks, one)
		}
		return decks
	}
	decks := deal(1)
	want, _ := cards(text)
	for i, d := range decks {
		if sorted := slices.Sorted(slices.Values(d)); !slices.Equal(sorted, want) {
			t.Errorf("deck %d holds %v", i, sorted)
		}
	}
	if slices.Equal(decks[0], decks[1]) || slices.Equal(decks[0], want) {
		t.Error("the deck is not shuffled")
	}
	if again := deal(1); !slices.Equal(again[0], decks[0]) || !slices.Equal(again[2], decks[2]) {
		t.Error("the same seed dealt another order")
	}
	if other := deal(2); slices.Equal(other[0], decks[0]) {
		t.Error("another seed dealt the same order")
	}
}

func TestAnswersTakeTheirCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestService(t, func(c *Config) { c.Latency = "10ms:3, 50ms:1" })
		var took []time.Duration
		for range 8 {
			start := time.Now()
			ask(t, s, newInbound("GET", "/product", "", ""))
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		if want := ms(10, 10, 10, 10, 10, 10, 50, 50); !slices.Equal(took, want) {
			t.Errorf("%v, want %v", took, want)
		}
	})
}

// A stream dealt again gives every request, by its order, the same time, wherever the
// deck had got to; another stream gives others.
func TestLatenciesDealtAnewAreTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestService(t, func(c *Config) { c.Latency = "10ms:6, 50ms:4" })
		deal := func(stream string, n int) (took []time.Duration) {
			if a := ask(t, s, newInbound("PUT", "/-/latency?stream="+stream, "", "")); a.Status != 200 {
				t.Fatalf("%+v", a)
			}
			for range n {
				start := time.Now()
				ask(t, s, newInbound("GET", "/product", "", ""))
				took = append(took, time.Since(start))
			}
			return took
		}
		first := deal("7", 33) // not whole decks
		if again := deal("7", 33); !slices.Equal(again, first) {
			t.Errorf("%v, then %v", first, again)
		}
		if other := deal("8", 33); slices.Equal(other, first) {
			t.Error("another stream deals the same")
		}
	})
}

func TestLatenciesAreDealtAnewForThoseWhoAskRightly(t *testing.T) {
	s := newTestService(t, func(*Config) {})
	far := newInbound("PUT", "/-/latency?stream=1", "", "")
	far.RemoteIP = "192.0.2.1"
	for _, tc := range []struct {
		in   *server.Inbound
		want int
	}{
		{newInbound("PUT", "/-/latency?stream=18446744073709551615", "", ""), 200},
		{newInbound("PUT", "/-/latency", "", ""), 400},
		{newInbound("PUT", "/-/latency?stream=-1", "", ""), 400},
		{newInbound("GET", "/-/latency", "", ""), 405},
		{far, 403},
	} {
		if a := ask(t, s, tc.in); a.Status != tc.want {
			t.Errorf("%s %s from %s: %d, want %d: %s", tc.in.Method, tc.in.Target, tc.in.RemoteIP, a.Status, tc.want, a.Body)
		}
	}
}

// On the wire a load that is repeated after a new deal meets the same long waits. Twice
// fifty milliseconds lie between a short one and a long one.
func TestLatenciesAreDealtAnewOnTheWire(t *testing.T) {
	onEachServer(t, func(t *testing.T, kind string) {
		_, base := newBackend(t, func(c *Config) { c.Server, c.Latency = kind, "0ms:4, 100ms:4" })
		c := newClient(t)
		deal := func() (long []bool) {
			if resp, body := fetch(t, c, "PUT", base+"/-/latency?stream=3", "", nil); resp.StatusCode != http.StatusOK {
				t.Fatalf("%d: %s", resp.StatusCode, body)
			}
			for range 6 { // not a whole deck
				start := time.Now()
				fetch(t, c, "GET", base+"/product", "", nil)
				long = append(long, time.Since(start) > 50*time.Millisecond)
			}
			return long
		}
		if first, again := deal(), deal(); !slices.Equal(first, again) {
			t.Errorf("%v, then %v", first, again)
		}
	})
}
