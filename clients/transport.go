package clients

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// NewTransport builds the [http.Transport] of every client that rides on
// net/http. Only the connection pool's numbers may differ between them, and only
// with pool policy "library": then they are those of shipped, the transport that
// the client's own library makes by default. Redirects, compression, proxies and
// protocol versions are the hop's policy and always the same.
//
// Timeouts up to the response head are not the transport's but the exchange's
// (see [Exchange]), so that they mean the same over any [http.RoundTripper].
func NewTransport(s Settings, shipped *http.Transport) (*http.Transport, error) {
	config, err := s.TLSConfig()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		Proxy:                  nil, // not the environment's: upstream is what the YAML says
		DisableCompression:     true,
		Protocols:              new(http.Protocols),
		MaxResponseHeaderBytes: int64(s.Limits.Header),
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return observed(s.Dialer.DialContext(ctx, network, addr))
		},
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return observed(s.Dialer.DialTLS(ctx, network, addr, config))
		},
	}
	t.Protocols.SetHTTP1(true)
	if s.Pool.Policy == PoolLibrary {
		t.MaxConnsPerHost = shipped.MaxConnsPerHost
		t.MaxIdleConns = shipped.MaxIdleConns
		t.MaxIdleConnsPerHost = shipped.MaxIdleConnsPerHost
		t.IdleConnTimeout = shipped.IdleConnTimeout
		t.DisableKeepAlives = shipped.DisableKeepAlives
		return t, nil
	}
	t.MaxConnsPerHost = s.Pool.MaxConns
	t.MaxIdleConns = 0 // no bound across hosts: there is one host
	t.MaxIdleConnsPerHost = s.Pool.MaxConns
	t.IdleConnTimeout = s.Pool.IdleTimeout
	t.DisableKeepAlives = !s.Pool.KeepAlive
	return t, nil
}

// observedConn counts what was read from a connection and notes its end. net/http
// reports a head beyond the limit, a connection that ended and a malformed head all
// as plain text errors; what had come in by then tells them apart without reading
// the text.
type observedConn struct {
	net.Conn
	read    atomic.Int64 // bytes; after decryption
	reading atomic.Bool  // a read is waiting for more
	ended   atomic.Bool  // a read has failed
	closed  atomic.Bool  // on our side

	over   chan struct{} // closes with the first of the two
	isOver sync.Once
}

func observed[C net.Conn](c C, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	return &observedConn{Conn: c, over: make(chan struct{})}, nil
}

func (c *observedConn) end(how *atomic.Bool) {
	how.Store(true)
	c.isOver.Do(func() { close(c.over) })
}

func (c *observedConn) Read(p []byte) (int, error) {
	c.reading.Store(true)
	n, err := c.Conn.Read(p)
	c.reading.Store(false)
	c.read.Add(int64(n))
	if err != nil {
		c.end(&c.ended)
	}
	return n, err
}

// Write does not fail as long as reading may still bring an answer. The transport
// drops a connection whose write fails; but an upstream that refuses an upload,
// answers and closes without reading it makes the write fail while its answer lies
// in our receive buffer. What has come in is read first: the end behind it, or the
// end of the answer, ends the wait.
func (c *observedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil && isDisconnect(err) {
		<-c.over
	}
	return n, err
}

func (c *observedConn) Close() error {
	c.end(&c.closed)
	return c.Conn.Close()
}

const (
	// settleWait bounds how long settle waits for the transport. It takes
	// microseconds, but on a starved machine a goroutine may have to wait for
	// its turn, and to give up costs an innocent request its connection.
	settleWait = 5 * time.Second

	// settleSpin is for how long settle does not sleep meanwhile.
	settleSpin = 100 * time.Microsecond
)

// settle makes sure that nothing is left over on a connection that comes from the
// pool. The transport gives a connection back before it looks whether upstream has
// sent more than the one answer. A request that is quick enough to get hold of it
// in between would be given the surplus for its answer (RFC 9112, section 9.2).
// Once the transport waits for more bytes, there were none; and if there were, it
// closes the connection.
func (c *observedConn) settle() {
	var since time.Time
	for !c.reading.Load() && !c.ended.Load() && !c.closed.Load() {
		if since.IsZero() {
			since = time.Now()
		}
		switch waited := time.Since(since); {
		case waited > settleWait:
			_ = c.Close()
		case waited > settleSpin:
			time.Sleep(settleSpin)
		default:
			runtime.Gosched()
		}
	}
}

// CloseWrite half-closes, for upgraded connections.
func (c *observedConn) CloseWrite() error {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return errors.ErrUnsupported
}
