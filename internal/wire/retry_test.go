package wire

import (
	"fmt"
	"strings"
)

// What is sent again.
func retryCases() []testCase {
	return []testCase{
		{name: "post-sent-once", rule: "a POST is sent once under every retry policy, and its 503 or reset is told", source: "RB01, H1, H2, R12, go-resty/resty#777", run: postSentOnce},
		{name: "upload-sent-once", rule: "an upload is sent once, whole, and its 503 is told", source: "RB02, R8, H9, F2, go-resty/resty#1156", run: uploadSentOnce},
		{name: "get-retried", rule: "a GET is tried again on what the policy lists, and the attempts are counted the same for all", source: "RB01, R13, G16, X4", run: getRetried},
		{name: "retry-off", rule: "without a policy nothing is sent twice: 5xx, resets on fresh connections and time-outs included", source: "H1, H2, F2, X4", run: retryOff},
		{name: "retry-exhausted", rule: "when the attempts run out the caller gets upstream's last answer itself; a 404 is asked for once", source: "RB04, H2, hashicorp/go-retryablehttp#156", run: retryExhausted},
		{name: "retry-after", rule: "no Retry-After keeps a caller waiting beyond backoff.max, and senseless ones are ignored", source: "RB03, H5, hashicorp/go-retryablehttp#247", run: retryAfterCapped},
		{name: "retry-abandoned", rule: "who hangs up during the wait for the next attempt ends it", source: "RB03, H6", run: retryAbandoned},
	}
}

const everyRetry = `retry: {max_attempts: 3, retry_on: [connect, reset, timeout, "5xx", "429"], backoff: {base: 1ms, max: 5ms}, budget: 100%}`

func postSentOnce(c *check) {
	up := c.serve(func(p *peer) {
		for {
			m, err := p.request()
			if err != nil || m.target() == "/reset" {
				return
			}
			p.send(reply("503 Busy", "busy", "Retry-After: 0"))
		}
	})
	gw := c.gateway(up, everyRetry)
	for _, framing := range []string{"Content-Length: 0\r\n\r\n", "Content-Length: 4\r\n\r\nid=1", "Transfer-Encoding: chunked\r\n\r\n4\r\nid=1\r\n0\r\n\r\n"} {
		for _, method := range []string{"POST", "PATCH", "BREW"} {
			c.whole(c.ask(gw, method+" /503 HTTP/1.1\r\nHost: h\r\n"+framing), 503, "busy")
			c.problem(c.ask(gw, method+" /reset HTTP/1.1\r\nHost: h\r\n"+framing), 502, "reset")
		}
	}
	equal(c, "requests with 503", up.to("/503"), 9)
	equal(c, "requests with a reset", up.to("/reset"), 9)
	gw.counted(attempts, 18)
}

func uploadSentOnce(c *check) {
	body := strings.Repeat("0123456789abcdef", 3<<16)
	up := c.always(reply("503 Busy", "busy"))
	gw := c.gateway(up, everyRetry)
	for _, method := range []string{"PUT", "POST"} {
		c.whole(c.ask(gw, request(method, "/", fmt.Sprint("Content-Length: ", len(body)))+body), 503, "busy")
		equal(c, "the upload is whole", up.last().Body == body, true)
		c.whole(c.ask(gw, request(method, "/", "Transfer-Encoding: chunked")+chunk(body)+"0\r\n\r\n"), 503, "busy")
		equal(c, "the upload in chunks is whole", up.last().Body == body, true)
	}
	equal(c, "requests that arrived", len(up.requests()), 4)
}

func getRetried(c *check) {
	up := c.serve(func(p *peer) {
		for {
			m, err := p.request()
			if err != nil {
				return
			}
			switch nth := p.u.to(m.target()); {
			case nth == 3:
				p.send(ok("at last"))
			case m.target() == "/reset":
				return
			default:
				p.send(reply(m.target()[1:]+" Busy", "busy", "Connection: close"))
				return
			}
		}
	})
	gw := c.gateway(up, everyRetry, "pool: {keep_alive: false}") // no stale connections, which are another matter
	for _, target := range []string{"/503", "/429", "/reset"} {
		c.whole(c.ask(gw, get(target)), 200, "at last")
		equal(c, "attempts at "+target, up.to(target), 3)
	}
	gw.counted(attempts, 9)
	gw.breaker("closed")
}

func retryOff(c *check) {
	up := c.serve(func(p *peer) {
		m, err := p.request()
		if err != nil {
			return
		}
		switch m.target() {
		case "/503":
			p.send(reply("503 Busy", "busy", "Connection: close", "Retry-After: 0"))
		case "/silent":
			p.drain()
		}
	})
	gw := c.gateway(up, "timeouts: {response_header: "+roomy.String()+"}", "circuit_breaker: {enabled: false}")
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		c.whole(c.ask(gw, request(method, "/503")), 503, "busy")
		c.problem(c.ask(gw, request(method, "/reset")), 502, "reset")
		c.problem(c.ask(gw, request(method, "/silent")), 504, "timeout_header")
	}
	for _, target := range []string{"/503", "/reset", "/silent"} {
		equal(c, "requests to "+target, up.to(target), 3)
	}
	gw.counted(attempts, 9)
}

func retryExhausted(c *check) {
	up := c.answer(func(m *message) string {
		return reply(m.target()[1:]+" Reason", `{"why":"`+m.target()+`"}`, "Content-Type: application/json", "X-Reason: busy", "Retry-After: 0")
	})
	gw := c.gateway(up, everyRetry)
	for target, tries := range map[string]int{"/503": 3, "/429": 3, "/500": 3, "/404": 1, "/418": 1} {
		m := c.ask(gw, get(target))
		c.whole(m, int(target[1]-'0')*100+int(target[2]-'0')*10+int(target[3]-'0'), `{"why":"`+target+`"}`)
		equal(c, "fields", fmt.Sprint(m.all("X-Reason"), m.all("Content-Type"), m.all("Retry-After")), "[busy] [application/json] [0]")
		equal(c, "attempts at "+target, up.to(target), tries)
	}
	gw.counted(attempts, 11)
}

func retryAfterCapped(c *check) {
	for _, value := range []string{"3600", "Fri, 01 Jan 2099 00:00:00 GMT", "-5", "abc", "99999999999999999999", "1.5", ""} {
		up := c.answer(func(m *message) string { return reply("503 Busy", "busy", "Retry-After: "+value) })
		gw := c.gateway(up, `retry: {max_attempts: 3, retry_on: ["5xx"], backoff: {base: 1ms, max: 50ms}, budget: 100%}`)
		c.whole(c.ask(gw, get("/")), 503, "busy") // the patience of the reader is the bound
		equal(c, "attempts under Retry-After: "+value, len(up.requests()), 3)
	}
}

func retryAbandoned(c *check) {
	up := c.always(reply("503 Busy", "busy", "Retry-After: 3600"))
	gw := c.gateway(up, `retry: {max_attempts: 3, retry_on: ["5xx"], backoff: {base: 1ms, max: 1h}, budget: 100%}`, "timeouts: {request: 1h}")
	d := c.dial(gw)
	d.send(get("/"))
	c.eventually("the first attempt", func() bool { return len(up.requests()) == 1 })
	gw.counted(inFlight, 1)
	_ = d.Close()
	gw.counted(inFlight, 0)
	equal(c, "attempts", len(up.requests()), 1)
}
