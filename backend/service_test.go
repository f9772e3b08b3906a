package backend

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatebench/clients"
	"gatebench/server"
)

// newTestService gives a service without a server. Its waits are Go's own, so
// that it can live in a synctest bubble.
func newTestService(t testing.TB, change func(*Config)) *service {
	t.Helper()
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	files, err := openUploads(cfg.UploadDir, cfg.MaxUpload)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := files.close(); err != nil {
			t.Error(err)
		}
	})
	return newService(cfg, files, sleep, func() server.Conns { return server.Conns{} }, nil)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newInbound is a request as a server hands it over.
func newInbound(method, target, contentType, body string) *server.Inbound {
	in := &server.Inbound{RemoteIP: "127.0.0.1", ProtoMinor: 1}
	in.Method, in.Target, in.Host = method, target, "backend"
	if contentType != "" {
		in.Fields.Add("Content-Type", contentType)
	}
	if body != "" {
		in.Body, in.ContentLength = strings.NewReader(body), int64(len(body))
	}
	return in
}

// answer is a response read whole.
type answer struct {
	Status int
	Fields clients.Fields
	Body   string
}

func ask(t testing.TB, s *service, in *server.Inbound) answer {
	t.Helper()
	resp := s.Serve(t.Context(), in)
	if resp == nil {
		t.Fatalf("%s %s: no response", in.Method, in.Target)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.ContentLength != int64(len(body)) {
		t.Errorf("%s %s: announced %d bytes, sent %d", in.Method, in.Target, resp.ContentLength, len(body))
	}
	a := answer{resp.Status, resp.Fields, string(body)}
	resp.End(nil)
	return a
}

const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

func TestEndpointsAnswerExactly(t *testing.T) {
	s := newTestService(t, nil)
	isJSON := clients.Fields{{Name: "Content-Type", Value: jsonType}}
	isProduct := append(isJSON[:1:1], clients.Field{Name: "X-appId", Value: "android01"},
		clients.Field{Name: "Set-Cookie", Value: "sid=1000101111"})
	isText := clients.Fields{{Name: "Content-Type", Value: "text/plain; charset=utf-8"}}
	const ta = `{"name":"TA","id":"1","price":56.67}`

	for _, tc := range []struct {
		name, method, target, contentType, body string
		fields                                  clients.Fields
		want                                    string
	}{
		{"product", "GET", "/product?type=T", "", "", isProduct, ta},
		{"product by any method", "PATCH", "/product?type=T", "", "ignored", isProduct, ta},
		{"product, HEAD like GET", "HEAD", "/product?type=T", "", "", isProduct, ta},
		{"product, type left out", "GET", "/product", "", "", isProduct, ta},
		{"product, other parameters", "GET", "/product?a=1&type=T", "", "", isProduct, ta},
		{"product of another type", "GET", "/product?type=%C3%A9%3C", "", "", isProduct, `{"name":"é<A","id":"1","price":56.67}`},
		{"product, path encoded", "GET", "/%70roduct?type=T", "", "", isProduct, ta},
		{"products", "GET", "/products?type=T", "", "", isJSON,
			`[` + ta + `,{"name":"TB","id":"2","price":66.66},{"name":"TC","id":"3","price":88.88}]`},
		{"products of another type", "GET", "/products?type=U", "", "", isJSON,
			`[{"name":"UA","id":"1","price":56.67},{"name":"UB","id":"2","price":66.66},{"name":"UC","id":"3","price":88.88}]`},
		{"product by id", "GET", "/product/7?name=pen&price=1.50", "", "", isJSON, `{"name":"pen","id":"7","price":1.5}`},
		{"product by id, decoded", "GET", "/product/a%2Fb%20c?name=x+y&price=-0.5", "", "", isJSON, `{"name":"x y","id":"a/b c","price":-0.5}`},
		{"product by id, name left out", "GET", "/product/7?price=3", "", "", isJSON, `{"name":"","id":"7","price":3}`},
		{"form in the query", "POST", "/postProduct?id=1&name=a&price=2", "", "", isJSON, `{"name":"a","id":"1","price":2}`},
		{"form in the body", "POST", "/postProduct", formType + "; charset=utf-8", "id=1&name=a%26b&price=2e2", isJSON, `{"name":"a&b","id":"1","price":200}`},
		{"form in both, the body rules", "POST", "/postProduct?id=0&name=q&price=1", formType, "name=b", isJSON, `{"name":"b","id":"0","price":1}`},
		{"product in JSON", "POST", "/postProduct2", jsonType, ` {"name":"<a>","id":"1","price":2.25,"more":[]} `, isJSON, `{"name":"<a>","id":"1","price":2.25}`},
		{"list", "POST", "/bookTickets", jsonType, `[ {"seat": 1.50}, 2 ]`, isJSON, `[ {"seat": 1.50}, 2 ]`},
		{"empty list", "POST", "/bookTickets", jsonType, `[]`, isJSON, `[]`},
		{"hello in seconds", "GET", "/hello/0", "", "", isText, "hello after 0s\n"},
		{"hello in a unit", "GET", "/hello/2ms", "", "", isText, "hello after 2ms\n"},
		{"ready", "GET", "/healthz", "", "", isText, "ok\n"},
		{"ready, HEAD", "HEAD", "/healthz", "", "", isText, "ok\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ask(t, s, newInbound(tc.method, tc.target, tc.contentType, tc.body))
			if diff := cmp.Diff(answer{200, tc.fields, tc.want}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestRefusalsSayWhatIsWrong(t *testing.T) {
	s := newTestService(t, nil)
	for _, tc := range []struct {
		name, method, target, contentType, body string
		status                                  int
		detail                                  string // a part of it
	}{
		{"price missing", "GET", "/product/7?name=a", "", "", 400, "the price is missing"},
		{"price empty", "GET", "/product/7?name=a&price=", "", "", 400, "the price is missing"},
		{"price a word", "GET", "/product/7?price=cheap", "", "", 400, `the price "cheap" is not a number`},
		{"price NaN", "GET", "/product/7?price=NaN", "", "", 400, "not a number"},
		{"price infinite", "GET", "/product/7?price=-Inf", "", "", 400, "not a number"},
		{"price beyond float64", "GET", "/product/7?price=1e999", "", "", 400, "not a number"},
		{"price hexadecimal", "GET", "/product/7?price=0x1p4", "", "", 400, "not a number"},
		{"price with comma", "GET", "/product/7?price=5,5", "", "", 400, "not a number"},
		{"price with space", "GET", "/product/7?price=+5", "", "", 400, "not a number"},
		{"query broken", "GET", "/product/7?price=%zz", "", "", 400, "the query cannot be read"},
		{"form broken", "POST", "/postProduct?price=1", formType, "a=%zz", 400, "the form cannot be read"},
		{"form of another kind", "POST", "/postProduct", "text/plain", "price=1", 400, "the price is missing"},
		{"form too large", "POST", "/postProduct", formType, strings.Repeat("a", maxBody+1), 413, "larger than"},
		{"JSON broken", "POST", "/postProduct2", jsonType, `{"name":`, 400, "not a product in JSON"},
		{"JSON with something behind", "POST", "/postProduct2", jsonType, `{} {}`, 400, "not a product in JSON"},
		{"JSON of the wrong type", "POST", "/postProduct2", jsonType, `{"price":"2"}`, 400, "price is a string"},
		{"JSON price beyond float64", "POST", "/postProduct2", jsonType, `{"price":1e999}`, 400, "price is a number"},
		{"JSON null", "POST", "/postProduct2", jsonType, `null`, 400, "it is null"},
		{"JSON list where a product goes", "POST", "/postProduct2", jsonType, `[]`, 400, "it is a JSON array"},
		{"JSON empty", "POST", "/postProduct2", jsonType, "", 400, "not a product in JSON"},
		{"product where a list goes", "POST", "/bookTickets", jsonType, `{}`, 400, "it is a JSON object"},
		{"null where a list goes", "POST", "/bookTickets", jsonType, `null`, 400, "it is null"},
		{"list with something behind", "POST", "/bookTickets", jsonType, `[1]]`, 400, "not a list in JSON"},
		{"hello without a number", "GET", "/hello/soon", "", "", 400, "not a time to wait"},
		{"hello before now", "GET", "/hello/-1s", "", "", 400, "not a time to wait"},
		{"hello too long", "GET", "/hello/61", "", "", 400, "too long a wait: 1m0s is the most"},
		{"hello beyond int64", "GET", "/hello/99999999999999999999", "", "", 400, "not a time to wait"},
		{"no file", "POST", "/uploadFile", "", "x", 400, "multipart/form-data"},
		{"no such path", "GET", "/products/7", "", "", 404, `there is no "/products/7" here`},
		{"root", "GET", "/", "", "", 404, "there is no"},
		{"two slashes", "GET", "//product", "", "", 404, "there is no"},
		{"nothing behind the slash", "GET", "/product/", "", "", 404, "there is no"},
		{"one level too deep", "GET", "/product/7/8?price=1", "", "", 404, "there is no"},
		{"path broken", "GET", "/product/%zz?price=1", "", "", 404, "there is no"},
		{"asterisk", "OPTIONS", "*", "", "", 404, "there is no"},
		{"no such path with anything in it", "GET", "/\"<\x00>", "", "", 404, `there is no "/\"<\x00>" here`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ask(t, s, newInbound(tc.method, tc.target, tc.contentType, tc.body))
			var p problem
			if err := json.Unmarshal([]byte(got.Body), &p); err != nil {
				t.Fatalf("%q: %v", got.Body, err)
			}
			if got.Status != tc.status || p.Status != tc.status || p.Title != http.StatusText(tc.status) ||
				got.Fields.Get("Content-Type") != "application/problem+json" {
				t.Errorf("status %d, %v, %+v; want %d", got.Status, got.Fields, p, tc.status)
			}
			if !strings.Contains(p.Detail, tc.detail) {
				t.Errorf("detail %q lacks %q", p.Detail, tc.detail)
			}
		})
	}
}

func TestWrongMethodNamesTheRightOnes(t *testing.T) {
	s := newTestService(t, nil)
	for path, allow := range map[string]string{
		"/postProduct": "POST", "/postProduct2": "POST", "/bookTickets": "POST", "/uploadFile": "POST",
		"/healthz": "GET, HEAD", "/metrics": "GET, HEAD",
	} {
		got := ask(t, s, newInbound("DELETE", path, "", ""))
		if got.Status != 405 || got.Fields.Get("Allow") != allow {
			t.Errorf("DELETE %s: %d, Allow %q; want 405, %q", path, got.Status, got.Fields.Get("Allow"), allow)
		}
	}
}

func TestBodyFailuresKeepTheirMeaning(t *testing.T) {
	s := newTestService(t, nil)
	for _, target := range []string{"/postProduct2", "/product", "/uploadFile"} {
		for kind, status := range map[clients.Kind]int{
			clients.RequestTooLarge: 413, clients.TimeoutBody: 408, clients.BadRequest: 400, 0: 400, clients.Canceled: 0,
		} {
			in := newInbound("POST", target, `multipart/form-data; boundary=x`, "")
			in.Body, in.ContentLength = failing{kind}, -1
			resp := s.Serve(t.Context(), in)
			switch {
			case status == 0 && resp == nil:
			case resp == nil || resp.Status != status:
				t.Errorf("POST %s with a body that ends in %v: %+v; want %d", target, kind, resp, status)
			default:
				resp.End(nil)
			}
		}
	}
	if busy, _ := s.workers.load(); busy != 0 || s.metrics.inFlight.Load() != 0 {
		t.Errorf("%d workers busy and %d in flight at the end", busy, s.metrics.inFlight.Load())
	}
}

func TestBodyOfUnknownLengthIsBounded(t *testing.T) {
	s := newTestService(t, nil)
	for size, status := range map[int]int{maxBody: 200, maxBody + 1: 413} {
		in := newInbound("POST", "/bookTickets", jsonType, "["+strings.Repeat(" ", size-2)+"]")
		in.ContentLength = -1
		if got := ask(t, s, in); got.Status != status {
			t.Errorf("%d bytes: %d, want %d", size, got.Status, status)
		}
	}
}

// failing is a body that breaks at once.
type failing struct{ kind clients.Kind }

func (f failing) Read([]byte) (int, error) {
	if f.kind == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return 0, &clients.Error{Kind: f.kind}
}

func TestServedTimeOnlyIfAsked(t *testing.T) {
	s := newTestService(t, func(c *Config) { c.Latency = "3ms" })
	in := newInbound("GET", "/product?type=T", "", "")
	if got := ask(t, s, in); got.Fields.Has("X-Served-Ns") {
		t.Errorf("unasked: %v", got.Fields)
	}
	in.Fields.Add("x-want-timing", "1")
	got := ask(t, s, in)
	ns, err := time.ParseDuration(got.Fields.Get("X-Served-Ns") + "ns")
	if err != nil || ns < 3*time.Millisecond || ns > 30*time.Second {
		t.Errorf("X-Served-Ns %q for a latency of 3 ms", got.Fields.Get("X-Served-Ns"))
	}
	if len(productFields) != 3 {
		t.Errorf("the shared fields grew: %v", productFields)
	}
}

func TestPanicGivesTheWorkerBack(t *testing.T) {
	s := newTestService(t, func(c *Config) { c.MaxWorkers = 1 })
	in := newInbound("POST", "/postProduct2", jsonType, "")
	in.Body = panicking{}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not come through")
			}
		}()
		s.Serve(t.Context(), in)
	}()
	if got := ask(t, s, newInbound("GET", "/product", "", "")); got.Status != 200 {
		t.Errorf("after a panic: %d", got.Status)
	}
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("read") }

func BenchmarkProduct(b *testing.B) {
	s := newTestService(b, nil)
	in := newInbound("GET", "/product?type=T", "", "")
	for _, name := range []string{"Accept", "User-Agent", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Via"} {
		in.Fields.Add(name, "value")
	}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		s.Serve(ctx, in).End(nil)
	}
}
