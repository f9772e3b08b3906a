package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"gatebench/loadtest/result"
)

// JUnit writes a concluded document as JUnit's XML for build servers: a case per
// arm for every threshold, for its trials' validity and for every verdict.
//
// What fails a build is a missed threshold, and a result or an arm that is not
// valid. A verdict never does, being worse than the baseline is no defect of a
// client: "cannot tell" is a skipped case, "not valid" an error.
func JUnit(w io.Writer, doc *result.Document) error {
	suites := junitSuites{Name: "gatebench " + clean(doc.Plan)}
	for _, s := range []junitSuite{validityCases(doc), thresholdCases(doc), verdictCases(doc)} {
		if len(s.Cases) == 0 {
			continue
		}
		if !doc.Started.IsZero() {
			s.Timestamp = doc.Started.UTC().Format("2006-01-02T15:04:05")
		}
		s.count()
		suites.Suites = append(suites.Suites, s)
	}
	b, err := xml.MarshalIndent(suites, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding JUnit: %w", err)
	}
	_, err = io.WriteString(w, xml.Header+string(b)+"\n")
	return err
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Name    string       `xml:"name,attr"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Timestamp string      `xml:"timestamp,attr,omitempty"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
}

func (s *junitSuite) count() {
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
}

func said(format string, args ...any) *junitMessage {
	return &junitMessage{clean(fmt.Sprintf(format, args...))}
}

// caseOf is a case in the class of an arm: build servers split classes at dots, so
// there must be none in it.
func caseOf(arm, name string) junitCase {
	return junitCase{Class: "gatebench." + strings.ReplaceAll(clean(arm), ".", "_"), Name: clean(name)}
}

// validityCases are the result as a whole and every arm's trials.
func validityCases(doc *result.Document) junitSuite {
	s := junitSuite{Name: "validity"}
	whole := caseOf("result", "the result is valid")
	if !doc.Valid {
		whole.Error = said("%s", strings.Join(doc.InvalidReasons, "; "))
	}
	s.Cases = append(s.Cases, whole)
	for _, a := range doc.Arms {
		c := caseOf(a.Name, "trials are valid")
		trials, void, reason := 0, 0, ""
		for _, t := range doc.Trials {
			if t.Arm != a.Name {
				continue
			}
			trials++
			if !t.Valid {
				void++
				reason = t.VoidReason
			}
		}
		switch {
		case trials == 0:
			c.Error = said("no data: the arm has no trial")
		case void == trials:
			c.Error = said("no data: every trial is void, the last one because: %s", reason)
		default:
			c.Output = clean(fmt.Sprintf("%d of %s void", void, plural(trials, "trial")))
			if void > 0 {
				c.Output += clean(", the last one because: " + reason)
			}
		}
		s.Cases = append(s.Cases, c)
	}
	return s
}

func thresholdCases(doc *result.Document) junitSuite {
	s := junitSuite{Name: "thresholds"}
	for _, h := range doc.Thresholds {
		c := caseOf(h.Arm, fmt.Sprintf("%s [%s]", h.Threshold, h.Profile))
		switch h.Outcome {
		case result.Met:
			c.Output = held(h)
		case result.Missed:
			c.Failure = said("%s is %s", h.Threshold, held(h))
		case result.Unmeasured:
			c.Failure = said("no data: %s", h.Why)
		case result.Open:
			c.Skipped = said("cannot tell at %s: %s", held(h), h.Why)
		}
		s.Cases = append(s.Cases, c)
	}
	return s
}

func verdictCases(doc *result.Document) junitSuite {
	s := junitSuite{Name: "verdicts"}
	for _, j := range judged(doc) {
		for _, row := range j.Rows {
			if row.Comparison == nil || row.Sentinel {
				continue
			}
			d := row.Comparison
			c := caseOf(row.Arm, fmt.Sprintf("%s against %s [%s]", j.Metric.Title, d.Baseline, j.Profile))
			words := fmt.Sprintf("%s: %s", verdict(row, j.Blocks), difference(d))
			if claimed(d.Verdict) && d.Why != "" {
				words = fmt.Sprintf("%s: %s, but %s", d.Verdict, difference(d), d.Why)
			}
			switch d.Verdict {
			case result.NotValid:
				c.Error = said("%s: %s", d.Verdict, d.Why)
			case result.CannotTell:
				c.Skipped = said("%s", words)
			case result.Better, result.Worse, result.NoDifference:
				c.Output = clean(words)
			}
			s.Cases = append(s.Cases, c)
		}
	}
	return s
}
