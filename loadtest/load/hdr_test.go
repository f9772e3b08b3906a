package load

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// What is written is read back by the library's own reader, to the same quantiles.
func TestHistogramsAreReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := loadPipes(t, t.Context(), profile(Profile{Executor: ConstantArrivalRate, Rate: perSecond(100), Duration: 10 * time.Second}),
			&pipes{script: stalling(time.Now())})
		var log bytes.Buffer
		if err := s.WriteHistograms(&log); err != nil {
			t.Fatal(err)
		}
		t.Log(log.String())
		r := hdr.NewHistogramLogReader(&log)
		for _, want := range []struct {
			tag string
			*Times
		}{{"response", s.OKResponseTime}, {"service", s.ServiceTime}} {
			h, err := r.NextIntervalHistogram()
			if err != nil || h == nil {
				t.Fatalf("%v, %v", h, err)
			}
			if h.Tag() != want.tag || h.TotalCount() != 1000 || h.EndTimeMs() != 10_000 {
				t.Errorf("%q, %d samples, ends at %d ms", h.Tag(), h.TotalCount(), h.EndTimeMs())
			}
			near(t, "p99", float64(h.ValueAtPercentile(99))/1e6, *want.P99, *want.P99/1000)
		}
	})
}
