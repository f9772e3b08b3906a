package report

import (
	"strings"
	"testing"
	"time"

	"gatebench/loadtest/result"
)

// The page is made of the same sentences as the other reports.
func TestThePageSaysWhatTheTextSays(t *testing.T) {
	d := whole(8, 4)
	page := pageOf(t, d)
	s := Summarize(d)
	for _, sentence := range append(s.Answer, s.validityWords()) {
		escaped := strings.NewReplacer("&", "&amp;", "+", "&#43;", `"`, "&#34;", "'", "&#39;", "<", "&lt;", ">", "&gt;").Replace(sentence)
		if !strings.Contains(page, escaped) {
			t.Errorf("the page lacks %q", sentence)
		}
	}
	for _, title := range []string{"Decision", "How sure?", "Why?", "Load: steady", "Load: ladder", "What failed", "Configuration that differs", "Method and machine", "What this does not say"} {
		if !strings.Contains(page, "<h3>"+title+"</h3>") {
			t.Errorf("the page lacks the part %q", title)
		}
	}
	last := -1
	for _, title := range []string{"Decision", "How sure?", "Why?", "Load: steady", "What failed", "Configuration that differs", "Method and machine", "What this does not say"} {
		at := strings.Index(page, "<h3>"+title+"</h3>")
		if at < last {
			t.Errorf("%q stands too early", title)
		}
		last = at
	}
}

func TestVoidBlocksAreHollow(t *testing.T) {
	d := whole(8, 4)
	if n := strings.Count(string(forest(d, Summarize(d).Judged[0])), "dot void"); n != 1 {
		t.Errorf("%d hollow dots, and one block is void", n)
	}
}

func TestASpikeIsKept(t *testing.T) {
	d := whole(8, 600)
	drawn := string(overTime(d, "steady"))
	flat := whole(8, 600)
	for i := range flat.Trials {
		if s := flat.Trials[i].Series; s != nil {
			s.Points = append(s.Points[:300:300], s.Points[301:]...)
		}
	}
	if drawn == string(overTime(flat, "steady")) || drawn == "" {
		t.Error("the chart is the same without the spike")
	}
}

func TestTheKneeIsTheFirstStageThatDoesNotKeepUp(t *testing.T) {
	drawn := string(ladder(whole(8, 4), "ladder"))
	if n := strings.Count(drawn, "knee: "); n != 4 { // one an arm
		t.Errorf("%d knees", n)
	}
	if !strings.Contains(drawn, "knee: net/http at 5000/s") {
		t.Error("the knee is not at the first rate above 4,800/s")
	}
}

// A million samples and five arms stay a few megabytes.
func TestAHugeResultMakesASmallPage(t *testing.T) {
	d := whole(40, 600)
	var n int64
	for i := range d.Trials {
		d.Trials[i].Requests = 25_000
		n += d.Trials[i].Requests
	}
	page := pageOf(t, d)
	if n < 1_000_000 || len(page) > 3<<20 {
		t.Errorf("%d requests, a page of %d bytes", n, len(page))
	}
}

func TestNothingGetsIntoThePage(t *testing.T) {
	page := pageOf(t, concludedDoc("hostile"))
	if strings.Contains(page, "<script>alert") || strings.ContainsAny(page, "\x1b\x07") {
		t.Error("markup or control characters got in")
	}
}

func TestSeveralResultsAreOrderedByDate(t *testing.T) {
	early, late := whole(8, 3), whole(8, 3)
	late.Started = early.Started.Add(48 * time.Hour)
	late.Plan = "later"
	page := pageOf(t, late, early)
	if a, b := strings.Index(page, `id="r1"`), strings.Index(page, `id="r2"`); a < 0 || b < a {
		t.Fatal("no two results")
	}
	if strings.Index(page, "gatebench quick:") > strings.Index(page, "gatebench later:") {
		t.Error("the later result stands first")
	}
	if rows := overDates([]*result.Document{early, late}); len(rows) < 3 || len(rows[0]) != 4 {
		t.Errorf("%v", rows)
	}
}

// The distribution is drawn from each trial's whole curve where there is one, and from
// its five quantiles where there is none.
func TestTheDistributionIsTheTrialsCurves(t *testing.T) {
	points := func(doc *result.Document) int {
		c := curvesOf(doc, "steady", "response_time")
		if len(c) != 4 {
			t.Fatalf("%d curves", len(c))
		}
		return len(c[0].beyond)
	}
	doc := concluded(t, made(4, 0.05, nil))
	if n := points(doc); n < 2 || n > 5 {
		t.Errorf("%d points without curves", n)
	}
	for i := range doc.Trials {
		tr := &doc.Trials[i]
		if tr.Phase != result.Solo {
			continue
		}
		tr.Curves = map[string][]result.CurvePoint{}
		for _, beyond := range []float64{1, .75, .5, .2, .1, .05, .02, .01, .005, .002} {
			tr.Curves["response_time"] = append(tr.Curves["response_time"], result.CurvePoint{Q: 1 - beyond, MS: 1 / beyond})
		}
	}
	if n := points(doc); n < 10 {
		t.Errorf("%d points of curves of ten", n)
	}
	if page := string(distribution(doc, "steady")); !strings.Contains(page, ">p99<") || strings.Contains(page, "NaN") {
		t.Error(page)
	}
}

// Failed requests stand in the interval and the class that they failed in.
func TestFailuresAreDrawnByClassOverTime(t *testing.T) {
	doc := concluded(t, made(1, 0.05, nil))
	if got := failing(doc, "steady"); got != "" {
		t.Errorf("drawn without any: %s", got)
	}
	for i := range doc.Trials {
		if tr := &doc.Trials[i]; tr.Phase == result.Solo && tr.Arm == "resty" {
			tr.Series = &result.Series{Interval: 1, Points: []result.Point{
				{At: 0, Sent: 10, OK: 10}, {At: 1, Sent: 10, Failed: 7, Errors: map[string]int64{"timeout": 3, "status": 4}}, {At: 2, Sent: 10, OK: 10},
			}}
		}
	}
	got := string(failing(doc, "steady"))
	for _, want := range []string{" s: 3 timeout</title>", " s: 4 status</title>", ">timeout<", ">status<"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(got, ">fasthttp<") {
		t.Error("an arm without failures has a strip")
	}
}
