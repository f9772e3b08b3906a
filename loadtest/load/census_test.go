package load

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLittlesLawHolds(t *testing.T) {
	for _, tt := range []struct {
		name     string
		p        Profile
		server   script
		inFlight float64
		within   float64 // of what was seen
	}{
		{"users who never think", Profile{Executor: ConstantVUs, VUs: 7, Warmup: time.Second, Duration: 5 * time.Second}, afterDelay(30 * time.Millisecond), 7, 0},
		{"users who think", Profile{Executor: ConstantVUs, VUs: 40, ThinkTime: 90 * time.Millisecond, ThinkDistribution: Exponential, Warmup: time.Second, Duration: 20 * time.Second}, afterDelay(30 * time.Millisecond), 10, .6},
		{"arrivals", Profile{Executor: ConstantArrivalRate, Rate: perSecond(333), Warmup: time.Second, Duration: 20 * time.Second}, afterDelay(30 * time.Millisecond), 10, .2},
		{"poisson arrivals", Profile{Executor: ConstantArrivalRate, Rate: perSecond(333), Arrivals: Poisson, Warmup: time.Second, Duration: 20 * time.Second}, afterDelay(30 * time.Millisecond), 10, .6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &pipes{script: tt.server}
				e, s := loadPipes(t, t.Context(), profile(tt.p), server)
				g := s.Generator
				near(t, "in flight", g.InFlight, tt.inFlight, tt.inFlight/25)
				near(t, "seen", *g.InFlightSeen, g.InFlight, tt.within)
				near(t, "on the wire", float64(g.OnWire), float64(server.seen.Load()), 0)
				if len(e.looks) < 300 || len(e.looks) > 500 {
					t.Errorf("%d looks", len(e.looks))
				}
				if strings.Contains(strings.Join(s.Warnings, "\n"), "Little") {
					t.Errorf("%q", s.Warnings)
				}
			})
		})
	}
}

// Little's law is held to the time in which requests are due, however long the last
// answers are awaited then.
func TestLittlesLawSparesTheTail(t *testing.T) {
	slowLast := func(i int64) string {
		time.Sleep(20 * time.Millisecond)
		if i == 2999 {
			time.Sleep(3 * time.Second)
		}
		return answer200
	}
	for _, tt := range []struct {
		name     string
		p        Profile
		server   script
		inFlight float64
	}{
		{"answers that take longer than the window", Profile{Executor: ConstantVUs, VUs: 10, Duration: 2 * time.Second}, afterDelay(3 * time.Second), 10},
		{"arrivals that outlast it", Profile{Executor: ConstantArrivalRate, Rate: perSecond(100), Warmup: 5 * time.Second, Duration: 4 * time.Second}, afterDelay(4500 * time.Millisecond), 450},
		{"a slow last iteration", Profile{Executor: SharedIterations, VUs: 20, Iterations: 3000}, slowLast, 20},
		{"the same within a duration", Profile{Executor: SharedIterations, VUs: 20, Iterations: 3000, Duration: 5 * time.Second}, slowLast, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, s := loadPipes(t, t.Context(), profile(tt.p), &pipes{script: tt.server})
				near(t, "in flight", s.Generator.InFlight, tt.inFlight, tt.inFlight/100)
				near(t, "seen", *s.Generator.InFlightSeen, tt.inFlight, tt.inFlight/100)
				if !s.Valid {
					t.Errorf("not valid: %q", s.Warnings)
				}
			})
		})
	}
}

// An engine that loses every tenth request is found out, one that loses none is not.
func TestLittlesLawFindsLostRequests(t *testing.T) {
	rng := rand.New(rand.NewPCG(42, 7))
	looks := make([]float64, censusLooks)
	for i := range looks {
		looks[i] = 10 + 3*rng.NormFloat64()
	}
	for _, tt := range []struct {
		inFlight float64
		valid    bool
	}{{mean(looks), true}, {10.15, true}, {8.5, false}, {11.5, false}} {
		e := newEngine(anything(), profile(Profile{Executor: ConstantVUs, VUs: 20, Duration: time.Minute}), nil)
		e.looks = looks
		s := &Summary{
			Requests: Requests{Planned: 10_000, Sent: 10_000, Completed: 10_000, OK: 10_000}, ResponseTime: &Times{P99: new(2.0)},
			Generator: Generator{InFlight: tt.inFlight}, Valid: true,
		}
		e.judge(s)
		if s.Valid != tt.valid {
			t.Errorf("%v in flight and %v seen: valid = %v, %q", tt.inFlight, mean(looks), s.Valid, s.Warnings)
		}
	}
	if _, _, ok := littleError(.5, looks); ok {
		t.Error("half a request in flight is judged")
	}
	if _, _, ok := littleError(10, looks[:censusBatches-1]); ok {
		t.Error("a few looks are judged")
	}
	if share, errors, ok := littleError(7, []float64{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}); !ok || share != 0 || errors > littleSure && !math.IsNaN(errors) {
		t.Errorf("%v, %v, %v where all agree", share, errors, ok)
	}
}

// A timeout says where the time ran out.
func TestTimeoutsNameTheirPhase(t *testing.T) {
	stall := func(answer string) string {
		return raw(t, func(_ int, c net.Conn) {
			_, _ = io.WriteString(c, answer)
			_, _ = io.Copy(io.Discard, c)
		})
	}
	for _, tt := range []struct {
		where, url string
		dial       dialFunc
	}{
		{"connect", "http://127.0.0.1:1/", func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }},
		{"header", stall("HTTP/1.1 200 OK\r\nContent-Le"), nil},
		{"body", stall("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), nil},
	} {
		p := iterations(2, 1)
		p.Timeout = 30 * time.Millisecond
		m, err := Target{URL: tt.url}.prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		if tt.dial == nil {
			if tt.dial, err = newDialer(t.Context(), m.endpoint); err != nil {
				t.Fatal(err)
			}
		}
		s, err := runOnce(t.Context(), tt.url, newEngine(m, p, tt.dial), nil)
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, s)
		if diff := cmp.Diff(map[string]int64{tt.where: 2}, s.Timeouts); diff != "" || s.Errors["timeout"] != 2 {
			t.Errorf("%s: %v %s", tt.where, s.Errors, diff)
		}
		if onWire := int64(2); tt.where != "connect" && s.Generator.OnWire != onWire || tt.where == "connect" && s.Generator.OnWire != 0 {
			t.Errorf("%s: %d requests on the wire", tt.where, s.Generator.OnWire)
		}
	}
}

// When local ports run out, the next source address of 127.0.0.0/8 takes over.
func TestSourceAddressesSpreadWhenPortsRunOut(t *testing.T) {
	if !canSpread {
		t.Skip("source addresses are spread on Linux alone")
	}
	var seen [256]bool
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		seen[net.ParseIP(host).To4()[3]] = true
	})
	m, err := Target{URL: s.URL}.prepare(iterations(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	d, err := findTarget(t.Context(), m.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	d.portsPerSource = 4 // instead of the system's 28,000
	var conns []net.Conn
	for range 11 {
		c, err := d.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range conns {
		_ = c.Close()
	}
	used := 0
	for _, ok := range seen {
		if ok {
			used++
		}
	}
	// Somebody else may hold one of the ports.
	if used < 3 || used > 6 {
		t.Errorf("11 connections of 4 ports each came from %d addresses", used)
	}
}
