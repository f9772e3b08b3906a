package load

import (
	"fmt"
	"io"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// WriteHistograms writes the response times of ok requests, tagged `response`, and
// the service times of all that were sent, tagged `service`, as an HdrHistogram log
// with V2 compressed histograms: nanoseconds, to three digits. Any HdrHistogram
// reads it, and logs of several runs can be merged, where percentiles cannot.
func (s *Summary) WriteHistograms(w io.Writer) error {
	if err := s.writeHistograms(hdr.NewHistogramLogWriter(w)); err != nil {
		return fmt.Errorf("write histograms: %w", err)
	}
	return nil
}

func (s *Summary) writeHistograms(w *hdr.HistogramLogWriter) error {
	if err := w.OutputLogFormatVersion(); err != nil {
		return err
	}
	if err := w.OutputComment(fmt.Sprintf("[%s of %s, values in nanoseconds]\n", s.Executor, s.URL)); err != nil {
		return err
	}
	if err := w.OutputLegend(); err != nil {
		return err
	}
	for _, h := range []struct {
		tag string
		of  *distribution
	}{{"response", &s.response}, {"service", &s.service}} {
		out := h.of.histogram()
		out.SetTag(h.tag)
		out.SetStartTimeMs(0)
		out.SetEndTimeMs(int64(s.Seconds * 1000))
		if err := w.OutputIntervalHistogram(out); err != nil {
			return err
		}
	}
	return nil
}
