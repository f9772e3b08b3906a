package fasthttp

import "gatebench/clients"

// Deviations are what the stock client cannot do, each with the reason.
func Deviations() []clients.Deviation {
	return []clients.Deviation{
		{Name: "cancel-before-head", Reason: "HostClient.Do takes no context: a request that nobody waits for any more runs on until its head or a timeout (valyala/fasthttp#2198)"},
		{Name: "early-response", Reason: "the request is written whole before anything is read: an answer that comes during an upload is lost when upstream closes (valyala/fasthttp#1348)"},
		{Name: "upload-silent", Reason: "the request body is read on the caller's goroutine: only who gives the body can end a read that waits for it"},
		{Name: "closed-idle", Reason: "nobody reads an idle connection: that upstream closed it is found out by the next request, which fails if it may not be repeated (valyala/fasthttp#1892)"},
		{Name: "unasked-bytes-idle", Reason: "nobody reads an idle connection: what upstream sends on it unasked is taken for the next answer"},
		{Name: "1xx", Reason: "interim responses are read over and not told (valyala/fasthttp#1992)"},
		{Name: "upgrade", Reason: "after 101 the connection would go back into the pool: a request that asks for an upgrade is refused with 501 (valyala/fasthttp#266)"},
		{Name: "odd-trailers", Reason: "a trailer with a name on the library's list of forbidden ones fails the response"},
		{Name: "repeated-content-encoding", Reason: "of several Content-Encoding lines the last is kept"},
		{Name: "repeated-length", Reason: "a second Content-Length line fails the response even if it says the same (valyala/fasthttp#1917)"},
		{Name: "bodyless-delete", Reason: "every request but GET and HEAD gets a Content-Length, if only of 0 (traefik/traefik#12339)"},
		{Name: "status-000", Reason: "status 000 reads as 200"},
		{Name: "no-goroutines", Reason: "the goroutine that closes idle connections sleeps through pool.idle_timeout before it sees that none is left"},
	}
}
