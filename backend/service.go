package backend

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatebench/backend/fault"
	"gatebench/clients"
	"gatebench/internal/conf"
	"gatebench/internal/deck"
	"gatebench/server"
)

// service is the product API, written once for both servers.
type service struct {
	latency *deck.Deck[time.Duration]
	faults  fault.Set
	padding *padding
	wait    func(ctx context.Context, d time.Duration) error
	workers workers
	uploads *uploads
	metrics *metrics
	log     *slog.Logger

	flat   map[string]*route // "/name"
	nested map[string]*route // "/name/argument"

	leave func(error) // hooks the end of an exchange; one value for all of them
}

// A route is what stands behind a path.
type route struct {
	label   string   // in metrics
	methods []string // nil is any
	answer  func(request) (*clients.Response, error)

	// own routes tell of the service itself: they take no worker, no latency,
	// and are not counted.
	own bool
	// untimed routes take no latency.
	untimed bool
}

// A request is one to a route. Its strings may be views of the server's buffer:
// nothing of them goes into a response uncopied.
type request struct {
	*server.Inbound
	ctx   context.Context
	arg   string // what follows the route's name in the path, decoded
	query string // raw

	padding *padding
}

// newService expects a configuration that is valid.
func newService(cfg Config, files *uploads, wait func(context.Context, time.Duration) error, conns func() server.Conns, log *slog.Logger) *service {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	latency, err := newDeck(cfg.Latency, cfg.LatencySeed)
	if err != nil {
		panic(err)
	}
	s := &service{latency: latency, padding: newPadding(int(cfg.BodySize)), wait: wait, uploads: files, log: log}
	s.workers.limit, s.workers.room = cfg.MaxWorkers, cfg.AcceptQueue
	s.addRoutes()
	s.metrics = newMetrics(s.labels(), conns, s.workers.load)
	s.leave = func(error) {
		s.workers.leave()
		s.metrics.inFlight.Add(-1)
	}
	return s
}

var read = []string{http.MethodGet, http.MethodHead}

func (s *service) addRoutes() {
	post := []string{http.MethodPost}
	s.flat = map[string]*route{
		"product":      {label: "/product", answer: product},
		"products":     {label: "/products", answer: products},
		"postProduct":  {label: "/postProduct", methods: post, answer: postProduct},
		"postProduct2": {label: "/postProduct2", methods: post, answer: postProductJSON},
		"bookTickets":  {label: "/bookTickets", methods: post, answer: bookTickets},
		"uploadFile":   {label: "/uploadFile", methods: post, answer: s.uploads.receive},
		"healthz":      {label: "/healthz", methods: read, answer: healthy, own: true},
		"metrics":      {label: "/metrics", methods: read, answer: s.scrape, own: true},
	}
	s.nested = map[string]*route{
		"product": {label: "/product/{pid}", answer: productByID},
		"hello":   {label: "/hello/{latency}", answer: s.hello, untimed: true},
		"-":       {label: "/-/faults", methods: control, answer: s.control, own: true},
	}
}

// elsewhere is where a path leads that no route has.
var elsewhere = &route{label: "other", untimed: true, answer: func(r request) (*clients.Response, error) {
	return nil, refuse(http.StatusNotFound, "there is no %.100q here", r.Target)
}}

// labels lists the routes that are counted.
func (s *service) labels() []string {
	labels := []string{elsewhere.label}
	for _, routes := range []map[string]*route{s.flat, s.nested} {
		for _, rt := range routes {
			if !rt.own {
				labels = append(labels, rt.label)
			}
		}
	}
	return labels
}

// Serve implements [server.Handler].
func (s *service) Serve(ctx context.Context, in *server.Inbound) (resp *clients.Response) {
	rt, r := s.match(ctx, in)
	if rt.own {
		return s.answer(rt, r)
	}
	var began time.Time
	timed := in.Fields.Has("X-Want-Timing")
	if timed {
		began = time.Now()
	}
	s.metrics.inFlight.Add(1)
	if err := s.workers.enter(ctx); err != nil {
		return s.turnAway(rt, err)
	}
	// A thread of a servlet container writes the answer too: the worker is
	// free when the exchange ends, and in any case if there is no answer.
	defer func() {
		if resp == nil {
			s.leave(nil)
			s.metrics.count(rt.label, 0)
			return
		}
		s.metrics.count(rt.label, resp.Status)
		resp.OnEnd(s.leave)
	}()
	if hit, met := s.faults.Draw(); met {
		resp = hit.Answer(fault.Exchange{Ctx: ctx, In: in, Wait: s.wait, Next: func() *clients.Response { return s.work(rt, r) }})
	} else {
		resp = s.work(rt, r)
	}
	if timed && resp != nil {
		ns := strconv.FormatInt(time.Since(began).Nanoseconds(), 10)
		resp.Fields = append(slices.Clip(resp.Fields), clients.Field{Name: "X-Served-Ns", Value: ns})
	}
	return resp
}

// work gives the answer when its latency is spent, nil where nobody is there to read
// one.
func (s *service) work(rt *route, r request) *clients.Response {
	resp := s.answer(rt, r)
	if !rt.untimed && s.spend(r.ctx) != nil {
		return nil
	}
	return resp
}

// turnAway answers a request that got no worker: nothing, if its caller has gone.
func (s *service) turnAway(rt *route, err error) *clients.Response {
	s.metrics.inFlight.Add(-1)
	if !errors.Is(err, errQueueFull) {
		s.metrics.count(rt.label, 0)
		return nil
	}
	s.metrics.count(rt.label, http.StatusServiceUnavailable)
	return refusal{http.StatusServiceUnavailable, err.Error()}.response()
}

// spend takes the latency of one answer.
func (s *service) spend(ctx context.Context) error {
	d := s.latency.Deal()
	if d == 0 {
		return nil
	}
	return s.wait(ctx, d)
}

// match finds the route of a target. A path is split before it is decoded, so
// that %2F in an argument stays in it.
func (s *service) match(ctx context.Context, in *server.Inbound) (*route, request) {
	r := request{Inbound: in, ctx: ctx, padding: s.padding}
	path, query, _ := strings.Cut(in.Target, "?")
	r.query = query
	name, arg, nested := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	routes := s.flat
	if nested {
		routes = s.nested
	}
	name, err := url.PathUnescape(name)
	if err != nil || !strings.HasPrefix(path, "/") {
		return elsewhere, r
	}
	rt, ok := routes[name]
	if !ok || nested && (arg == "" || strings.Contains(arg, "/")) {
		return elsewhere, r
	}
	if r.arg, err = url.PathUnescape(arg); err != nil {
		return elsewhere, r
	}
	return rt, r
}

// answer returns nil where nobody is there to read one.
func (s *service) answer(rt *route, r request) *clients.Response {
	if rt.methods != nil && !slices.Contains(rt.methods, r.Method) {
		return refusal{http.StatusMethodNotAllowed, rt.label + " takes " + strings.Join(rt.methods, ", ")}.
			response(clients.Field{Name: "Allow", Value: strings.Join(rt.methods, ", ")})
	}
	resp, err := rt.answer(r)
	if err == nil {
		return resp
	}
	if clients.KindOf(err) == clients.Canceled || r.ctx.Err() != nil {
		return nil
	}
	told := refusalOf(err)
	if told.status == http.StatusInternalServerError {
		s.log.Error("request failed", "route", rt.label, "err", err)
	}
	return told.response()
}

func healthy(request) (*clients.Response, error) {
	return clients.NewResponse(http.StatusOK, textFields, []byte("ok\n")), nil
}

func (s *service) scrape(request) (*clients.Response, error) { return s.metrics.response() }

var textFields = clients.Fields{{Name: "Content-Type", Value: "text/plain; charset=utf-8"}}

// maxHello bounds the wait that a caller may ask for.
const maxHello = time.Minute

// hello takes as long as the caller says, in place of the configured latency.
func (s *service) hello(r request) (*clients.Response, error) {
	if err := discard(r.Body); err != nil {
		return nil, err
	}
	d, err := parseHello(r.arg)
	if err != nil {
		return nil, err
	}
	if err := s.wait(r.ctx, d); err != nil {
		return nil, &clients.Error{Kind: clients.Canceled, Err: err}
	}
	return clients.NewResponse(http.StatusOK, textFields, []byte("hello after "+d.String()+"\n")), nil
}

// parseHello reads whole seconds, "2", or a duration, "250ms".
func parseHello(text string) (time.Duration, error) {
	asDuration := text
	if strings.Trim(text, "0123456789") == "" {
		asDuration += "s"
	}
	d, err := conf.ParseDuration(asDuration)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "%.40q is not a time to wait: write seconds, like 2, or a duration, like 250ms", text)
	}
	if d > maxHello {
		return 0, refuse(http.StatusBadRequest, "%v is too long a wait: %v is the most", d, maxHello)
	}
	return d, nil
}
