package server

import (
	"slices"

	"gatebench/clients"
)

// Deviations lists what a kind of server cannot do although the contract asks for
// it. Names are those of the conformance cases in this package's tests, which
// check that each is still true.
func Deviations(kind string) []clients.Deviation {
	var ds []clients.Deviation
	switch kind {
	case NetHTTP:
		ds = netDeviations[:]
	case FastHTTP:
		ds = fastDeviations[:]
		if !hangUpsAreSeen {
			ds = append(slices.Clip(ds), unseen("cancellation"), unseen("cancellation-in-body"))
		}
	}
	return slices.Clone(ds)
}

func unseen(rule string) clients.Deviation {
	return clients.Deviation{Name: rule, Reason: "fasthttp does not look at the connection while the handler runs, and here the system cannot be asked without reading"}
}

var netDeviations = [...]clients.Deviation{
	{Name: "field-order", Reason: "net/http parses and writes fields as a map: requests come sorted by name, responses go out sorted"},
	{Name: "field-case", Reason: "net/http writes the names of received fields in canonical case"},
	{Name: "folded-field", Reason: "net/http joins a folded field to one line before anybody sees it"},
	{Name: "length-and-coding", Reason: "net/http hides a Content-Length beside Transfer-Encoding, so the request is served; no chunked request keeps its connection"},
	{Name: "http10-coding", Reason: "net/http hides Transfer-Encoding over HTTP/1.0, so the request is served without a body; no HTTP/1.0 request keeps its connection"},
	{Name: "http10-keep-alive", Reason: "net/http hides Transfer-Encoding over HTTP/1.0, so no HTTP/1.0 request keeps its connection"},
	{Name: "chunked-keep-alive", Reason: "net/http hides a Content-Length beside Transfer-Encoding, so no chunked request keeps its connection"},
	{Name: "worded-refusals", Reason: "net/http words its own 400, 431, 501 and 505"},
	{Name: "bad-escape-target", Reason: "net/http refuses a path with a malformed percent escape"},
	{Name: "not-modified-length", Reason: "net/http writes no Content-Length and no Content-Type with 304"},
}

var fastDeviations = [...]clients.Deviation{
	{Name: "date", Reason: "fasthttp writes its own Date in place of upstream's"},
	{Name: "field-order", Reason: "fasthttp writes some response fields first and Set-Cookie last"},
	{Name: "repeated-fields", Reason: "fasthttp writes Content-Type, Content-Encoding and Server once: encodings are joined to one list, of the others the last is kept"},
	{Name: "answer-before-body", Reason: "fasthttp waits for the first byte of a body of known length before the handler runs"},
	{Name: "continue-on-read", Reason: "fasthttp sends 100 Continue before the handler runs"},
	{Name: "unannounced-trailers", Reason: "fasthttp writes only trailers whose names were known before the body"},
}
