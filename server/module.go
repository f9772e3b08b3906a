package server

// Module is where a kind of server comes from: a Go module path, or the standard
// library's package.
func Module(kind string) string {
	if kind == FastHTTP {
		return "github.com/valyala/fasthttp"
	}
	return kind
}
