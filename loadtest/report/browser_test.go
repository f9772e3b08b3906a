package report

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"image"
	"image/color"
	_ "image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatebench/loadtest/result"
)

var shots = flag.String("shots", "", "folder for pictures of the pages, to be looked at")

// browser is a real one, and axe the accessibility checks that run in it. `make test`
// sees to both; without them the tests are skipped, and under CI=true they fail.
func browser(t *testing.T) (path, axe string) {
	t.Helper()
	missing := func(what string) {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is missing: make test installs it", what)
		}
		t.Skipf("%s is missing: make test installs it", what)
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		missing("a browser (chromium)")
	}
	b, err := os.ReadFile(filepath.Join("..", "..", "tools", "page", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		missing("axe-core")
	}
	return path, string(b)
}

// view is how a page is looked at.
type view struct {
	width         int
	dark, noJS    bool
	picture, file string // files to write: a picture, a PDF
}

func (v view) String() string {
	s := fmt.Sprintf("%dpx", v.width)
	if v.dark {
		s += "-dark"
	}
	if v.noJS {
		s += "-nojs"
	}
	return s
}

// probe is what a page says of itself.
type probe struct {
	Violations []string
	Overflow   int      // pixels by which the page is wider than the window
	Alerts     int      // scripts that got in
	Requests   []string // what it fetched
	Dark       bool
	Sortable   int // tables that the script took on
}

// probing is added to a page under test: nothing in it may alert, and the probe's
// findings are put into the document.
const probing = `<script>addEventListener("load", async () => {
const r = await axe.run(document, {resultTypes: ["violations"]});
const pre = document.createElement("pre"); pre.id = "probe";
pre.textContent = JSON.stringify({
  violations: r.violations.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.target.join(" ") + " " + n.failureSummary).join(" | ")),
  overflow: document.documentElement.scrollWidth - innerWidth,
  alerts: window.alerts, requests: performance.getEntriesByType("resource").map(e => e.name),
  dark: matchMedia("(prefers-color-scheme: dark)").matches,
  sortable: document.querySelectorAll("thead button").length});
document.body.append(pre);
});</script>`

var probed = regexp.MustCompile(`(?s)<pre id="probe">(.*?)</pre>`)

// look opens a page in the browser and returns what the document then is.
func look(t *testing.T, chromium, page string, v view) string {
	t.Helper()
	if v.noJS { // the switch would stop the browser's own scripts too
		page = strings.Replace(page, "<head>", `<head><meta http-equiv="Content-Security-Policy" content="script-src 'none'">`, 1)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--user-data-dir=" + filepath.Join(dir, "profile"), fmt.Sprintf("--window-size=%d,1400", v.width), "--virtual-time-budget=20000",
		"--host-resolver-rules=MAP * ~NOTFOUND"}
	settings := []string{}
	if v.dark {
		settings = append(settings, "preferredColorScheme=0")
	} else {
		settings = append(settings, "preferredColorScheme=1")
	}
	args = append(args, "--blink-settings="+strings.Join(settings, ","))
	switch {
	case v.picture != "":
		args = append(args, "--screenshot="+v.picture)
	case v.file != "":
		args = append(args, "--print-to-pdf="+v.file)
	default:
		args = append(args, "--dump-dom")
	}
	out, err := exec.CommandContext(ctx, chromium, append(args, "file://"+file)...).Output()
	if err != nil {
		t.Fatalf("%s: %v", chromium, err)
	}
	return string(out)
}

// examine has a page looked at by the probe.
func examine(t *testing.T, page string, v view) probe {
	t.Helper()
	chromium, axe := browser(t)
	page = strings.Replace(page, "<head>", "<head><script>window.alerts = 0; window.alert = () => { window.alerts++ }</script>", 1)
	page = strings.Replace(page, "</body>", "<script>"+axe+"</script>"+probing+"</body>", 1)
	m := probed.FindStringSubmatch(look(t, chromium, page, v))
	if m == nil {
		t.Fatal("the probe found nothing: did a script fail?")
	}
	var p probe
	if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func pageOf(t *testing.T, docs ...*result.Document) string {
	t.Helper()
	var b strings.Builder
	if err := HTML(&b, docs...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// whole is a document with all that a page can draw.
func whole(blocks, points int) *result.Document {
	d := made(blocks, 0.02, map[string]float64{"resty": 1.19, "fasthttp": 0.6})
	var ladders []result.Trial
	for i := range d.Trials {
		t := &d.Trials[i]
		if t.Arm == "resty" && t.Block == 0 {
			t.Valid, t.VoidReason = false, "CPU time that other processes used: more than 10 %"
		}
		if t.Phase != result.Solo {
			continue
		}
		p50 := t.Metrics["response_time_p50"]
		for suffix, factor := range map[string]float64{"p50": 1, "p90": 1.8, "p95": 2.4, "p99": 4.5, "p999": 15} {
			t.Metrics["response_time_"+suffix], t.Metrics["service_time_"+suffix] = p50*factor, p50*factor*0.9
		}
		for phase, share := range map[string]float64{"pool_wait_ms": .02, "connect_ms": .01, "upstream_ms": .6, "relay_ms": .2} {
			t.Metrics[phase] = p50 * share
		}
		t.Curves = map[string][]result.CurvePoint{}
		for beyond := 1.0; beyond > 0.0005; beyond *= 0.7 {
			ms := p50 * (0.5 + math.Pow(1/beyond, 0.6)/2)
			t.Curves["response_time"] = append(t.Curves["response_time"], result.CurvePoint{Q: 1 - beyond, MS: ms})
			t.Curves["service_time"] = append(t.Curves["service_time"], result.CurvePoint{Q: 1 - beyond, MS: ms * 0.9})
		}
		t.Series = &result.Series{Interval: 1}
		for at := range points {
			p99 := p50 * (4 + math.Sin(float64(at)))
			if at == points/2 {
				p99 *= 20 // a spike
			}
			point := result.Point{At: float64(at), Sent: 2143, OK: 2143, P50: &p50, P99: &p99, Max: &p99}
			if at == points/2 && t.Arm != "fasthttp" {
				point.OK, point.Failed, point.Errors = 2133, 10, map[string]int64{"timeout": 4, "status": 6}
			}
			t.Series.Points = append(t.Series.Points, point)
		}
		l := *t
		l.Profile, l.Series = "ladder", nil
		for step := range 6 {
			offered, p99 := float64(1000*(step+1)), p50*math.Exp(float64(step)*0.7)
			l.Steps = append(l.Steps, result.Step{At: float64(step), Seconds: 1, Offered: offered, Goodput: min(offered, 4800), Throughput: offered, P99: &p99})
		}
		ladders = append(ladders, l)
	}
	d.Trials = append(d.Trials, ladders...)
	d.Config = json.RawMessage(`{"arms": [{"name": "net/http", "gateway": {"client": "net/http"}}, {"name": "resty", "gateway": {"client": "resty"}}, {"name": "fasthttp", "gateway": {"client": "fasthttp"}}]}`)
	Conclude(d)
	return d
}

func concludedDoc(name string) *result.Document {
	d := documents()[name]()
	Conclude(d)
	return d
}

func TestPagesInABrowser(t *testing.T) {
	later := whole(6, 4)
	later.Started = later.Started.Add(24 * time.Hour)
	for _, c := range []struct {
		name  string
		page  func() string
		views []view
	}{
		{"whole", func() string { return pageOf(t, whole(8, 16)) }, []view{{width: 1440}, {width: 1440, dark: true}, {width: 360}, {width: 360, dark: true}}},
		{"huge", func() string { return pageOf(t, whole(20, 600)) }, []view{{width: 1440}}},
		{"hostile", func() string { return pageOf(t, concludedDoc("hostile")) }, []view{{width: 500}}},
		{"no-data", func() string { return pageOf(t, concludedDoc("no-data")) }, []view{{width: 360}}},
		{"one-block", func() string { return pageOf(t, concludedDoc("one-block")) }, []view{{width: 1440}}},
		{"outage", func() string { return pageOf(t, concludedDoc("outage")) }, []view{{width: 1440, dark: true}}},
		{"all-failed", func() string { return pageOf(t, concludedDoc("all-failed")) }, []view{{width: 1440}}},
		{"two-runs", func() string { return pageOf(t, later, whole(8, 3)) }, []view{{width: 1440}}},
	} {
		for _, v := range c.views {
			t.Run(c.name+"/"+v.String(), func(t *testing.T) {
				page := c.page()
				if len(page) > 4<<20 {
					t.Errorf("the page has %d bytes", len(page))
				}
				p := examine(t, page, v)
				for _, violation := range p.Violations {
					t.Errorf("axe: %s", violation)
				}
				if p.Overflow > 0 {
					t.Errorf("the page is %d pixels wider than the window", p.Overflow)
				}
				if p.Alerts != 0 {
					t.Errorf("%d scripts got in", p.Alerts)
				}
				if len(p.Requests) != 0 {
					t.Errorf("it fetched %v", p.Requests)
				}
				if p.Dark != v.dark {
					t.Errorf("dark: %v", p.Dark)
				}
				if *shots != "" {
					chromium, _ := browser(t)
					v.picture = filepath.Join(*shots, strings.ReplaceAll(c.name+"-"+v.String()+".png", "/", "-"))
					look(t, chromium, page, v)
				}
			})
		}
	}
}

// By keyboard: the arrow keys say what a chart's marks stand for, Enter has it grow. A
// table sorts both ways, and what has no figure stays last. Two profiles are two tabs.
func TestThePageByKeyboard(t *testing.T) {
	chromium, _ := browser(t)
	page := strings.Replace(pageOf(t, whole(8, 16)), "</body>", `<script>addEventListener("load", () => {
const chart = document.querySelector(".chart"), press = (key) => chart.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
const said = () => chart.nextElementSibling.textContent;
press("ArrowRight"); const first = said(); press("ArrowRight"); const second = said(); press("ArrowLeft"); const back = said();
press("Enter"); const zoomed = chart.classList.contains("zoomed");
const table = document.querySelector("table.sortable"), cell = () => table.tBodies[0].rows[table.tBodies[0].rows.length - 1].cells[1].textContent;
table.tBodies[0].rows[0].cells[1].textContent = "–";
const button = table.querySelectorAll("thead button")[1]; button.click(); const up = cell(); button.click(); const down = cell();
const pre = document.createElement("pre"); pre.id = "probe";
pre.textContent = JSON.stringify({first, second, back, zoomed, up, down, tabs: document.querySelectorAll("header .tabs button").length});
document.body.append(pre);
});</script></body>`, 1)
	m := probed.FindStringSubmatch(look(t, chromium, page, view{width: 1000}))
	if m == nil {
		t.Fatal("the probe found nothing: did a script fail?")
	}
	var p struct {
		First, Second, Back, Up, Down string
		Zoomed                        bool
		Tabs                          int
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &p); err != nil {
		t.Fatal(err)
	}
	if p.First == "" || p.First == p.Second || p.Back != p.First || !p.Zoomed {
		t.Errorf("%+v", p)
	}
	if p.Up != "–" || p.Down != "–" {
		t.Errorf("sorted up the last is %q, down %q", p.Up, p.Down)
	}
	if p.Tabs < 3 { // all, and two profiles
		t.Errorf("%d tabs", p.Tabs)
	}
}

// Without scripts it is all there: what is looked at is the picture.
func TestThePageNeedsNoScript(t *testing.T) {
	chromium, _ := browser(t)
	picture := filepath.Join(t.TempDir(), "page.png")
	page := pageOf(t, whole(8, 16))
	look(t, chromium, page, view{width: 1000, noJS: true, picture: picture})
	f, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, _, err := image.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[color.Color]bool{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			seen[img.At(x, y)] = true
		}
	}
	if len(seen) < 50 {
		t.Errorf("the picture has %d colours: the page is blank", len(seen))
	}
	if dom := look(t, chromium, page, view{width: 1000, noJS: true}); strings.Contains(dom, "<button") || strings.Count(dom, "<svg") < 6 {
		t.Error("without scripts there are buttons, or not all charts")
	}
}

func TestThePagePrints(t *testing.T) {
	chromium, _ := browser(t)
	file := filepath.Join(t.TempDir(), "page.pdf")
	look(t, chromium, pageOf(t, whole(8, 16)), view{width: 1000, file: file})
	pdf, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if pages := strings.Count(string(pdf), "/Type /Page\n"); pages < 2 || pages > 12 {
		t.Errorf("%d pages", pages)
	}
}
