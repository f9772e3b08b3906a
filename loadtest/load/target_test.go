package load

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatebench/internal/conf"
)

func TestRequestIsWrittenAsAsked(t *testing.T) {
	for _, tt := range []struct {
		t         Target
		keepAlive bool
		want      string
		host      string
	}{
		{Target{URL: "http://h/a%2Fb//c;d?q=%20&"}, true, "GET /a%2Fb//c;d?q=%20& HTTP/1.1\r\nHost: h\r\n\r\n", "h:80"},
		{Target{URL: "http://h:8080"}, true, "GET / HTTP/1.1\r\nHost: h:8080\r\n\r\n", "h:8080"},
		{Target{URL: "https://[::1]?"}, true, "GET /? HTTP/1.1\r\nHost: [::1]\r\n\r\n", "::1:443"},
		{Target{URL: "http://h/"}, false, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "h:80"},
		{Target{URL: "http://h/", Method: "POST"}, true, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "h:80"},
		{
			Target{URL: "http://h/", Method: "PATCH", Fields: []Field{{"x-A", "b c"}, {"host", "other"}}, Body: []byte("{}")},
			true, "PATCH / HTTP/1.1\r\nHost: other\r\nx-A: b c\r\nContent-Length: 2\r\n\r\n{}", "h:80",
		},
	} {
		p := profile(Profile{})
		p.KeepAlive = tt.keepAlive
		m, err := tt.t.prepare(p)
		if err != nil {
			t.Errorf("%+v: %v", tt.t, err)
			continue
		}
		if diff := cmp.Diff(tt.want, string(m.kinds[0].bytes[0])); diff != "" {
			t.Error(diff)
		}
		if got := m.host + ":" + m.port; got != tt.host {
			t.Errorf("%s: dials %s, want %s", tt.t.URL, got, tt.host)
		}
	}
}

func TestNothingSmugglesALine(t *testing.T) {
	for _, tt := range []struct {
		t    Target
		path string
	}{
		{Target{URL: "h:80/"}, "url"},
		{Target{URL: "ftp://h/"}, "url"},
		{Target{URL: "http:///path"}, "url"},
		{Target{URL: "http://u:p@h/"}, "url"},
		{Target{URL: "http://h/#f"}, "url"},
		{Target{URL: "http://h:99999/"}, "url"},
		{Target{URL: "http://h/?a b"}, "url"},
		{Target{URL: "http://h/?ä"}, "url"},
		{Target{URL: "http://h/\r\nX: 1"}, "url"},
		{Target{URL: "http://h/", Method: "GET / HTTP/1.1\r\nX: 1"}, "method"},
		{Target{URL: "http://h/", Method: "CONNECT"}, "method"},
		{Target{URL: "http://h/", Fields: []Field{{"A", "b\r\nC: d"}}}, "fields"},
		{Target{URL: "http://h/", Fields: []Field{{"A\n", "b"}}}, "fields"},
		{Target{URL: "http://h/", Fields: []Field{{"", "b"}}}, "fields"},
		{Target{URL: "http://h/", Fields: []Field{{"Content-Length", "1"}}}, "fields"},
		{Target{URL: "http://h/", Fields: []Field{{"transfer-encoding", "chunked"}}}, "fields"},
	} {
		_, err := tt.t.prepare(profile(Profile{}))
		ps := conf.Problems(err)
		if len(ps) == 0 {
			t.Errorf("%+v is not refused", tt.t)
		}
		for _, p := range ps {
			if p.Path != tt.path {
				t.Errorf("%+v: %v, want a problem with %s alone", tt.t, err, tt.path)
			}
		}
	}
}
