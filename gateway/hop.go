package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"gatebench/clients"
	"gatebench/server"
)

// A hop passes a request on and its response back. It is the whole of the policy
// and knows neither server nor client:
//
//	check · strip what ends here · add what this hop adds · join the base path
//	send, through breaker, admission and retry
//	check · strip what ends here · add Via
//
// Everything happens in place on the slices of the two messages, in one pass each.
type hop struct {
	client clients.Client
	meter  *meter
	// decoder is the client's other half in mode typed, else nil.
	decoder clients.Decoder

	base         string // put before every origin-form target
	host         string // upstream's own
	preserveHost bool
	strip        bool // forwarded: strip
	burn         burn

	pseudonym string    // this gateway's, in Via
	via       [2]string // Via's value for HTTP/1.0 and HTTP/1.1

	exchanges sync.Pool // of *exchange
}

func newHop(cfg Config, client clients.Client, m *meter, pseudonym string) (*hop, error) {
	u, err := parseUpstream(cfg.Upstream)
	if err != nil {
		return nil, err
	}
	burn, err := calibrate(cfg.Burn)
	if err != nil {
		return nil, err
	}
	burn.spent = &m.burned
	h := &hop{
		client:       client,
		meter:        m,
		base:         strings.TrimSuffix(u.EscapedPath(), "/"),
		host:         u.Host,
		preserveHost: cfg.Host == HostPreserve,
		strip:        cfg.Forwarded == ForwardedStrip,
		burn:         burn,
		pseudonym:    pseudonym,
	}
	h.via = [2]string{"1.0 " + h.pseudonym, "1.1 " + h.pseudonym}
	h.exchanges.New = func() any {
		x := &exchange{h: h}
		x.end = x.finish
		return x
	}
	return h, nil
}

// newPseudonym makes up a name for this gateway. It differs from process to process,
// so that gateways in a row are not taken for a loop.
func newPseudonym() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return "gatebench-" + hex.EncodeToString(b[:])
}

var _ server.Handler = (*hop)(nil)

// Serve implements [server.Handler].
func (h *hop) Serve(ctx context.Context, in *server.Inbound) *clients.Response {
	x := h.exchanges.Get().(*exchange)
	h.meter.inFlight.Add(1)
	served := false
	defer func() {
		if !served { // a panic, which the server answers and has counted
			h.meter.inFlight.Add(-1)
		}
	}()
	h.burn.spend()
	out := x.serve(ctx, in)
	served = true
	return out
}

// An exchange is one request on its way through the hop. It counts itself when it
// ends.
type exchange struct {
	h      *hop
	status int
	reason reason
	head   time.Time   // when the response's head was there; zero if nobody was asked
	end    func(error) // finish, bound once: a hook costs no allocation
}

func (x *exchange) serve(ctx context.Context, in *server.Inbound) *clients.Response {
	t := x.h.typedRoute(in) // before the base path is put in front
	offer, r := x.h.outbound(in)
	if r != noReason {
		return x.refuse(r, nil)
	}
	if t != untyped {
		in.Fields.Del("Accept-Encoding") // it is this gateway that reads the answer
	}
	began := time.Now()
	resp, err := x.h.client.Do(ctx, &in.Request)
	x.head = time.Now()
	x.h.meter.head.Add(int64(x.head.Sub(began)))
	if err != nil {
		return x.fail(err, in.BodyErr())
	}
	x.h.meter.attempts.Add(int64(resp.Attempts))
	if err := x.h.inbound(resp, offer); err != nil {
		resp.End(err)
		return x.refuse(reasonOf(err), err)
	}
	if t != untyped && resp.Status == http.StatusOK {
		if err := x.h.retype(resp, t); err != nil {
			return x.fail(err, in.BodyErr())
		}
	}
	return x.hand(resp)
}

// fail ends a request to which there is no response. If the caller's own body
// failed, that is the reason, whatever the client has made of it.
func (x *exchange) fail(err, bodyErr error) *clients.Response {
	if e, ok := errors.AsType[*clients.Error](err); ok {
		x.h.meter.attempts.Add(int64(e.Attempts))
	}
	if bodyErr != nil {
		err = bodyErr
	}
	r := reasonOf(err)
	if r == reason(clients.Canceled) {
		x.status, x.reason = 0, r
		x.finish(nil)
		return nil
	}
	return x.refuse(r, err)
}

// refuse answers in upstream's place.
func (x *exchange) refuse(r reason, err error) *clients.Response {
	x.reason = r
	return x.hand(answer(r, err))
}

// hand gives resp to the server, with the exchange at the end of it.
func (x *exchange) hand(resp *clients.Response) *clients.Response {
	x.status = resp.Status
	resp.OnEnd(x.end)
	return resp
}

// finish counts the exchange and gives it back. A response that broke off keeps
// its status and gets the reason.
func (x *exchange) finish(err error) {
	h, status, r := x.h, x.status, x.reason
	if r == noReason {
		r = reasonOf(err)
	}
	if !x.head.IsZero() {
		h.meter.relay.Add(int64(time.Since(x.head)))
	}
	x.status, x.reason, x.head = 0, noReason, time.Time{}
	h.exchanges.Put(x)
	h.meter.inFlight.Add(-1)
	h.meter.answered.add(status, r)
}

// outbound turns the request as received into the request as it goes upstream, or
// says why it does not go. offer is the other protocol that it asks for, if any.
func (h *hop) outbound(in *server.Inbound) (offer string, _ reason) {
	if !isToken(in.Method) || !isVisible(in.Target) || !isVisible(in.Host) {
		return "", reason(clients.BadRequest)
	}
	switch {
	case strings.HasPrefix(in.Target, "/"):
		if h.base != "" {
			in.Target = h.base + in.Target
		}
	case in.Target == "*" && in.Method == "OPTIONS":
	default: // absolute-form has been reduced by the server
		return "", reason(clients.BadRequest)
	}
	ended, r := h.stripRequest(&in.Fields)
	if r != noReason {
		return "", r
	}
	h.addForwarding(in, ended.origin)
	ended.upgrade.impossible = in.Body != nil || in.ProtoMinor == 0
	offer = ended.upgrade.offer()
	addUpgrade(in, offer)
	if !h.preserveHost || in.Host == "" {
		in.Host = h.host
	}
	h.relayInformational(in)
	return offer, noReason
}

// stripped is what the fields said that end at this hop and that it says anew.
type stripped struct {
	origin  string // X-Forwarded-For, its lines joined
	upgrade upgradeRequest
}

// stripRequest drops, in place, what ends here and what this hop will put anew.
func (h *hop) stripRequest(fs *clients.Fields) (was stripped, _ reason) {
	named := nominated(*fs)
	kept := (*fs)[:0]
	trailers := false
	for i := range *fs {
		f := (*fs)[i]
		if !wellFormed(&f) {
			return was, reason(clients.BadRequest)
		}
		if named != nil && named.has(f.Name) {
			continue
		}
		switch roleOf(f.Name) {
		case endToEnd:
		case hopByHop, expect, forwardedHost, forwardedProto:
			continue
		case connection:
			was.upgrade.nominated = was.upgrade.nominated || lists(f.Value, "upgrade")
			continue
		case upgrade:
			was.upgrade.protocols = join(was.upgrade.protocols, f.Value)
			continue
		case te:
			if trailers || !asksForTrailers(f.Value) {
				continue
			}
			trailers = true
			f.Value = "trailers"
		case via:
			if strings.Contains(f.Value, h.pseudonym) {
				return was, loop
			}
		case forwarded:
			if h.strip {
				continue
			}
		case forwardedFor:
			if !h.strip {
				was.origin = join(was.origin, f.Value)
			}
			continue
		}
		kept = append(kept, f)
	}
	*fs = kept
	return was, noReason
}

// join makes one list of two.
func join(list, more string) string {
	switch {
	case list == "":
		return more
	case more == "":
		return list
	}
	return list + ", " + more
}

func (h *hop) addForwarding(in *server.Inbound, origin string) {
	in.Fields.Add("X-Forwarded-For", join(origin, in.RemoteIP))
	if in.Host != "" {
		in.Fields.Add("X-Forwarded-Host", in.Host)
	}
	in.Fields.Add("X-Forwarded-Proto", "http")
	in.Fields.Add("Via", h.via[in.ProtoMinor&1])
}

// relayInformational puts the hop in the way of 1xx responses: they have fields
// that end here too, and HTTP/1.0 does not know them (RFC 9110, section 15.2).
//
// The closure is not pooled with the exchange: a library may tell of a 1xx late,
// and would then tell somebody else's caller.
func (h *hop) relayInformational(in *server.Inbound) {
	if in.Informational == nil {
		return
	}
	if in.ProtoMinor == 0 {
		in.Informational = nil
		return
	}
	tell := in.Informational
	in.Informational = func(status int, fs clients.Fields) {
		if kept, ok := endToEndOnly(fs); ok {
			tell(status, append(kept, clients.Field{Name: "Via", Value: h.via[1]}))
		}
	}
}

// inbound turns the response as received into the response as it goes downstream,
// or says why it does not go. Statuses pass untouched, as far as they are statuses
// of a final response; 101 does where another protocol was asked for.
func (h *hop) inbound(resp *clients.Response, offer string) error {
	switching := resp.Status == http.StatusSwitchingProtocols
	if resp.Status < 200 && !switching || resp.Status > 999 {
		return &clients.Error{Kind: clients.Protocol, Err: fmt.Errorf("%d is no final status", resp.Status)}
	}
	protocol := ""
	if switching {
		var err error
		if protocol, err = agreed(resp, offer); err != nil {
			return err
		}
	}
	announced := announcedTrailers(resp)
	kept, ok := endToEndOnly(resp.Fields)
	if !ok {
		return &clients.Error{Kind: clients.Protocol, Err: errMalformedField}
	}
	if announced != "" {
		kept.Add("Trailer", announced)
	}
	if switching {
		kept.Add("Connection", "Upgrade")
		kept.Add("Upgrade", protocol)
	}
	kept.Add("Via", h.via[1]) // version 1 speaks HTTP/1.1 to upstream
	resp.Fields = kept
	if resp.Trailers != nil {
		resp.Trailers = endToEndTrailers(resp.Trailers)
	}
	return nil
}

var errMalformedField = errors.New("a field is malformed")

// announcedTrailers lists the names that upstream has announced and this hop will
// pass on, as the value of a Trailer field of its own: a server may be able to send
// only what it has announced.
func announcedTrailers(resp *clients.Response) (list string) {
	if resp.Trailers == nil {
		return ""
	}
	for _, f := range resp.Fields {
		if !clients.EqualName(f.Name, "Trailer") {
			continue
		}
		for name := range strings.SplitSeq(f.Value, ",") {
			if name = trim(name); isToken(name) && !endsHere(roleOf(name)) && !framesOrRoutes(name) {
				list = join(list, name)
			}
		}
	}
	return list
}

// framesOrRoutes reports whether a trailer of that name would frame or route the
// message if a recipient merged it into the head (RFC 9110, section 6.5.1).
func framesOrRoutes(name string) bool {
	return clients.EqualName(name, "Content-Length") || clients.EqualName(name, "Host")
}

// endToEndTrailers drops from a trailer section what ends here, and what
// would frame or route the message.
func endToEndTrailers(received func() clients.Fields) func() clients.Fields {
	return func() clients.Fields {
		kept, ok := endToEndOnly(received())
		if !ok {
			return nil
		}
		return slices.DeleteFunc(kept, func(f clients.Field) bool { return framesOrRoutes(f.Name) })
	}
}
