package backend

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"gatebench/internal/conf"
	"gatebench/server"
)

// Config is the backend section of the YAML.
type Config struct {
	// Listen is the address to serve on, host:port; port 0 picks a free one.
	// Default 127.0.0.1:8081.
	Listen string `yaml:"listen"`
	// Server is the inbound HTTP library: net/http or fasthttp. Default
	// net/http.
	Server string `yaml:"server"`
	// MaxWorkers is how many requests are worked on at once; the others wait,
	// first come first served. 200 is a servlet container's default, 0 is
	// unbounded. Default 0.
	MaxWorkers int `yaml:"max_workers"`
	// AcceptQueue is how many requests may wait for a worker; one more is
	// answered with 503. 0 is unbounded. Default 0.
	AcceptQueue int `yaml:"accept_queue"`
	// MaxConnections is how many connections are open at once; the next ones
	// wait unaccepted. They are all connections, those that read /metrics too. 0
	// is unbounded. Default 0.
	MaxConnections int `yaml:"max_connections"`
	// Latency is how long every product endpoint but /hello takes to answer,
	// spent while holding a worker: constant, 20ms, or dealt from a shuffled
	// deck, "5ms:90, 20ms:9, 200ms:1". Default 0s.
	Latency Latency `yaml:"latency"`
	// LatencySeed shuffles the deck; an experiment deals it anew for every trial,
	// the same in all trials of a block. Default 1.
	LatencySeed uint64 `yaml:"latency_seed"`
	// BodySize pads bodies that hold products to at least this size. Default
	// 0B.
	BodySize conf.Size `yaml:"body_size"`
	// UploadDir is the folder that uploads are stored in; it is made if it is
	// not there. "" is a fresh temporary folder that goes when the backend
	// closes. Default "".
	UploadDir string `yaml:"upload_dir"`
	// MaxUpload bounds one uploaded file: more is 413. 0B is unbounded.
	// Default 1GiB.
	MaxUpload conf.Size `yaml:"max_upload"`
}

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config {
	return Config{Listen: "127.0.0.1:8081", Server: server.NetHTTP, Latency: "0s", LatencySeed: 1, MaxUpload: conf.GiB}
}

// Validate names every bad value at once.
func (c Config) Validate() error {
	var check conf.Check
	check.That(validListen(c.Listen), "listen",
		"%q is not an address to listen on: write host:port, like 127.0.0.1:8081", c.Listen)
	check.That(slices.Contains(server.Kinds(), c.Server), "server",
		"%q is not a server: write %s", c.Server, strings.Join(server.Kinds(), " or "))
	check.That(c.MaxWorkers >= 0, "max_workers", "%d workers cannot be: write 0 for no bound, or 1 and more", c.MaxWorkers)
	check.That(c.AcceptQueue >= 0, "accept_queue", "%d places cannot be: write 0 for no bound, or 1 and more", c.AcceptQueue)
	check.That(c.AcceptQueue == 0 || c.MaxWorkers > 0, "accept_queue", "bounds a queue that never forms: give max_workers too")
	check.That(c.MaxConnections >= 0, "max_connections", "%d connections cannot be: write 0 for no bound, or 1 and more", c.MaxConnections)
	if _, err := cards(string(c.Latency)); err != nil {
		check.That(false, "latency", "%v", err)
	}
	check.That(c.BodySize >= 0 && c.BodySize <= maxBodySize, "body_size", "%v is not from 0B to %v", c.BodySize, maxBodySize)
	check.That(!strings.ContainsRune(c.UploadDir, 0), "upload_dir", "%q is not the name of a folder", c.UploadDir)
	check.That(c.MaxUpload >= 0, "max_upload", "%d bytes is negative: write 0B for no bound", int64(c.MaxUpload))
	return check.Err()
}

// maxBodySize bounds what every answer holds in memory.
const maxBodySize = 64 * conf.MiB

func validListen(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
