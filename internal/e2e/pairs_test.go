package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatebench/clients/registry"
	"gatebench/server"
)

// exchange is one request of a caller.
type exchange struct {
	name, method, target string
	fields               map[string]string
	body                 []byte
}

// exchanges visit every endpoint of the product API, good and bad.
func exchanges() []exchange {
	json := map[string]string{"Content-Type": "application/json"}
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	small, smallType := upload("notes.txt", "31", []byte("three blind mice\n"))
	empty, emptyType := upload("empty.bin", "0", nil)
	evil, evilType := upload("../../etc/passwd", "7", []byte("root"))
	large, largeType := upload("large.bin", "9", noise(3<<20))
	return []exchange{
		{name: "product", method: "GET", target: "/product?type=T"},
		{name: "product by POST", method: "POST", target: "/product?type=T"},
		{name: "product by PUT", method: "PUT", target: "/product?type=T", body: []byte("x")},
		{name: "product by DELETE", method: "DELETE", target: "/product?type=T"},
		{name: "product by HEAD", method: "HEAD", target: "/product?type=T"},
		{name: "product of another type", method: "GET", target: "/product?type=" + "%C3%A9+x"},
		{name: "products", method: "GET", target: "/products?type=T"},
		{name: "product by id", method: "GET", target: "/product/42?name=lamp&price=9.50"},
		{name: "product by escaped id", method: "GET", target: "/product/a%2Fb%20c?name=l%26p&price=1"},
		{name: "price missing", method: "GET", target: "/product/42?name=lamp"},
		{name: "price malformed", method: "GET", target: "/product/42?name=lamp&price=cheap"},
		{name: "post by query", method: "POST", target: "/postProduct?id=7&name=cup&price=3.25"},
		{name: "post by form", method: "POST", target: "/postProduct", fields: form, body: []byte("id=7&name=big+cup&price=3.25")},
		{name: "post JSON", method: "POST", target: "/postProduct2", fields: json, body: []byte(`{"name":"jug","id":"8","price":12}`)},
		{name: "post bad JSON", method: "POST", target: "/postProduct2", fields: json, body: []byte(`{"name":`)},
		{name: "book tickets", method: "POST", target: "/bookTickets", fields: json, body: []byte(`[{"name":"a","id":"1","price":1},{"name":"b","id":"2","price":2}]`)},
		{name: "upload", method: "POST", target: "/uploadFile", fields: smallType, body: small},
		{name: "upload again", method: "POST", target: "/uploadFile", fields: smallType, body: small},
		{name: "upload nothing", method: "POST", target: "/uploadFile", fields: emptyType, body: empty},
		{name: "upload with a path", method: "POST", target: "/uploadFile", fields: evilType, body: evil},
		{name: "upload 3 MiB", method: "POST", target: "/uploadFile", fields: largeType, body: large},
		{name: "upload that is none", method: "POST", target: "/uploadFile", fields: json, body: []byte(`{}`)},
		{name: "hello", method: "GET", target: "/hello/10ms"},
		{name: "hello what", method: "GET", target: "/hello/soon"},
		{name: "nowhere", method: "GET", target: "/nowhere"},
		{name: "wrong method", method: "GET", target: "/uploadFile"},
	}
}

func upload(name, age string, content []byte) ([]byte, map[string]string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary("gatebench-boundary") // the same bytes to both backends
	_ = w.WriteField("age", age)
	f, _ := w.CreateFormFile("file", name)
	_, _ = f.Write(content)
	_ = w.Close()
	return b.Bytes(), map[string]string{"Content-Type": w.FormDataContentType()}
}

// noise is n bytes that do not compress, the same at every call.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(b)
	return b
}

// answer is what a caller can see of a response.
type answer struct {
	Status int
	Length int64
	Fields []string
	Body   string
}

// drawn is what the backend draws by lot into the stored name of a second upload
// of the same name: the one thing in which two equal backends differ.
var drawn = regexp.MustCompile(`-[a-z0-9]{12}\b`)

func (x exchange) send(t *testing.T, c *http.Client, addr string) answer {
	t.Helper()
	req, err := http.NewRequest(x.method, "http://"+addr+x.target, bytes.NewReader(x.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range x.fields {
		req.Header.Set(name, value)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", x.name, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", x.name, err)
	}
	a := answer{Status: resp.StatusCode, Length: resp.ContentLength, Body: drawn.ReplaceAllString(string(body), "-DRAWN")}
	for name, values := range resp.Header {
		switch name {
		case "Date", "Via": // the clock's, and the gateway's one addition
			continue
		}
		for _, v := range values {
			a.Fields = append(a.Fields, name+": "+v)
		}
	}
	slices.Sort(a.Fields)
	return a
}

// TestEveryPairAnswersLikeTheBackend drives all pairs of gateway server and client
// through every endpoint, over both of the backend's servers, and compares each
// answer with that of an equal backend called directly.
func TestEveryPairAnswersLikeTheBackend(t *testing.T) {
	for _, backendServer := range server.Kinds() {
		for _, gatewayServer := range server.Kinds() {
			for _, client := range registry.Names() {
				t.Run(fmt.Sprintf("%s+%s to %s", gatewayServer, client, backendServer), func(t *testing.T) {
					t.Parallel()
					directDir, behindDir := t.TempDir(), t.TempDir()
					direct := startBackend(t, fmt.Sprintf("backend: {server: %s, upload_dir: %q}", backendServer, directDir))
					behind := startBackend(t, fmt.Sprintf("backend: {server: %s, upload_dir: %q}", backendServer, behindDir))
					gw := startGateway(t, behind.addr, fmt.Sprintf("gateway: {server: %s, client: %s}", gatewayServer, client))
					c := newClient(t)
					for _, x := range exchanges() {
						want, got := x.send(t, c, direct.addr), x.send(t, c, gw.addr)
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("%s: the answer through the gateway differs (-direct +gateway):\n%s", x.name, diff)
						}
					}
					if diff := cmp.Diff(folder(t, directDir), folder(t, behindDir)); diff != "" {
						t.Errorf("uploaded files differ (-direct +gateway):\n%s", diff)
					}
				})
			}
		}
	}
}

// folder lists the files of dir with the digest of each.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		files[drawn.ReplaceAllString(e.Name(), "-DRAWN")] = hex.EncodeToString(sum[:])
	}
	return files
}

// TestTheSwitchChangesTheLibrary changes only `client:` and looks, at the moment
// when the request is upstream, at whose code waits for the answer: a label can
// lie, a stack cannot. On the wire the fasthttp client is told from the others by
// the order of the fields, which net/http sorts.
func TestTheSwitchChangesTheLibrary(t *testing.T) {
	code := map[string]string{
		"net/http":      "net/http.(*Transport).roundTrip",
		"resty":         "go-resty/resty/v2.(*Client).execute",
		"retryablehttp": "go-retryablehttp.(*Client).Do",
		"fasthttp":      "fasthttp.(*HostClient).Do",
	}
	for _, gatewayServer := range server.Kinds() {
		for _, client := range registry.Names() {
			t.Run(gatewayServer+"+"+client, func(t *testing.T) {
				up := newRawUpstream(t)
				gw := startGateway(t, up.addr, fmt.Sprintf("gateway: {server: %s, client: %s}", gatewayServer, client))
				// A socket, since an HTTP client here would stand in the stacks too.
				caller, err := net.Dial("tcp", gw.addr)
				if err != nil {
					t.Fatal(err)
				}
				defer caller.Close()
				fmt.Fprintf(caller, "GET /product?type=T HTTP/1.1\r\nHost: gateway\r\n\r\n")
				head, answer := up.next(t)
				stacks := allStacks()
				answer()
				for name, frame := range code {
					waits := strings.Contains(stacks, frame)
					// resty and retryablehttp ride on net/http's transport.
					rides := name == "net/http" && (client == "resty" || client == "retryablehttp")
					if want := name == client || rides; waits != want {
						t.Errorf("with client %s, %s is waiting for upstream: %v", client, frame, waits)
					}
				}
				if sorted := fieldsSorted(head); sorted != (client != "fasthttp") {
					t.Errorf("with client %s the fields upstream are sorted: %v\n%s", client, sorted, head)
				}
			})
		}
	}
}
