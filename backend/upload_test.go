package backend

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime/multipart"
	"net/textproto"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatebench/internal/conf"
	"gatebench/server"
)

// newUploadService gives a service whose upload folder stands beside others that
// an escape would reach, and a function that lists all files around by path and
// content.
func newUploadService(t testing.TB, limit conf.Size) (s *service, list func() map[string]string) {
	t.Helper()
	around := t.TempDir()
	dir := filepath.Join(around, "up", "loads")
	for _, d := range []string{dir, dir + "-sibling", filepath.Join(around, "a")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s = newTestService(t, func(c *Config) { c.UploadDir, c.MaxUpload = dir, limit })
	return s, func() map[string]string {
		files := map[string]string{}
		err := filepath.WalkDir(around, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			name, _ := filepath.Rel(dir, path)
			files[name] = string(content)
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return files
	}
}

// formPart is one part of a form; a disposition with %s in it gets the name raw.
type formPart struct{ disposition, content string }

func filePart(name, content string) formPart {
	return formPart{`form-data; name="file"; filename="` + name + `"`, content}
}

func agePart(age string) formPart { return formPart{`form-data; name="age"`, age} }

func newForm(t testing.TB, parts ...formPart) *server.Inbound {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, p := range parts {
		pw, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {p.disposition}})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(pw, p.content)
	}
	_ = w.Close()
	return newInbound("POST", "/uploadFile", w.FormDataContentType(), body.String())
}

func upload(t testing.TB, s *service, in *server.Inbound) (receipt, answer) {
	t.Helper()
	a := ask(t, s, in)
	var got receipt
	if a.Status == 200 {
		if err := json.Unmarshal([]byte(a.Body), &got); err != nil {
			t.Fatalf("%q: %v", a.Body, err)
		}
	}
	return got, a
}

func TestUploadIsStoredAndDescribed(t *testing.T) {
	s, list := newUploadService(t, 0)
	content := strings.Repeat("0123456789abcdef", 10_000)
	sum := sha256.Sum256([]byte(content))
	_, got := upload(t, s, newForm(t, agePart("33"), formPart{`form-data; name="other"`, "passed over"}, filePart("report.pdf", content)))
	want := fmt.Sprintf(`{"stored":"report.pdf","size":160000,"sha256":"%s","age":"33"}`, hex.EncodeToString(sum[:]))
	if got.Status != 200 || got.Body != want || got.Fields.Get("Content-Type") != jsonType {
		t.Errorf("got %+v\nwant %s", got, want)
	}
	if diff := cmp.Diff(map[string]string{"report.pdf": content}, list()); diff != "" {
		t.Error(diff)
	}
}

// Problem reports: goshs-labs/goshs#7, golang/vulndb#6137, golang/go#45789,
// node-formidable/formidable#1061.
func TestHostileNamesStayInTheFolder(t *testing.T) {
	s, list := newUploadService(t, 0)
	for i, tc := range []struct{ name, stored string }{
		{"../../x", "x"},
		{"..", "file"},
		{"a/../../b", "b"},
		{"/etc/passwd", "passwd"},
		{`..\\..\\y`, "y"}, // a quoted string: \\ is one backslash
		{`C:\\dir\\z.txt`, "z.txt"},
		{"%2e%2e/w", "w"},
		{"%2e%2e%2fv", "%2e%2e%2fv"},
		{"../loads-sibling/s", "s"},
		{"", "file-*"}, // "file" is taken by ".."
		{".", "file-*"},
		{".hidden", "hidden"},
		{"trailing. ", "trailing"},
		{"colon:stream", "colon_stream"},
		{"turned\u202efdp.exe", "turned_fdp.exe"},
		{"not utf-8 \xff", "not utf-8 _"},
		{"grüße 世界.txt", "grüße 世界.txt"},
		{strings.Repeat("n", 300) + ".txt", strings.Repeat("n", 196) + ".txt"},
		{"x" + strings.Repeat("é", 300), "x" + strings.Repeat("é", 99)}, // 199 bytes: no half character
		{"e." + strings.Repeat("x", 300), "e." + strings.Repeat("x", 198)},
		{"x", "x-*"},
		{"x", "x-*"},
		{"z.txt", "z-*.txt"},
		{"-rf", "-rf"},
	} {
		before := list()
		content := fmt.Sprint("content ", i)
		got, a := upload(t, s, newForm(t, filePart(tc.name, content)))
		if ok, _ := filepath.Match(tc.stored, got.Stored); !ok || a.Status != 200 {
			t.Errorf("%q: %d, stored as %q; want %q", tc.name, a.Status, got.Stored, tc.stored)
		}
		// Exactly one new file, inside, and all others as they were.
		before[got.Stored] = content
		if diff := cmp.Diff(before, list()); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", tc.name, diff)
		}
	}
}

// RFC 5987's form of a name is decoded, and so may hold what a quoted one cannot.
func TestNamesInOtherForms(t *testing.T) {
	s, list := newUploadService(t, 0)
	want := map[string]string{}
	for disposition, stored := range map[string]string{
		`form-data; name="file"`: "file",
		`form-data; name="file"; filename*=UTF-8''..%2F..%2Fnul%00byte%0A`:      "nul_byte_",
		`form-data; name="file"; filename*0="../a/"; filename*1="b"`:            "b",
		`form-data; name="file"; filename="plain"; filename*=UTF-8''bell%07%7f`: "bell__",
	} {
		if got, a := upload(t, s, newForm(t, formPart{disposition, "text"})); got.Stored != stored {
			t.Errorf("%s: %+v; want %q", disposition, a, stored)
		}
		want[stored] = "text"
	}
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Error(diff)
	}
}

func TestLinksInTheFolderAreNotFollowed(t *testing.T) {
	s, list := newUploadService(t, 0)
	outside := filepath.Join(filepath.Dir(s.uploads.root.Name()), "victim")
	if err := os.WriteFile(outside, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": outside, "dangling": outside + "2", "folder": ".."} {
		if err := os.Symlink(target, filepath.Join(s.uploads.root.Name(), name)); err != nil {
			t.Fatal(err)
		}
		got, a := upload(t, s, newForm(t, filePart(name, "new")))
		if ok, _ := filepath.Match(name+"-*", got.Stored); !ok {
			t.Errorf("%s: %+v", name, a)
		}
		// list would stumble over a link to a folder.
		if err := os.Remove(filepath.Join(s.uploads.root.Name(), name)); err != nil {
			t.Fatal(err)
		}
	}
	files := list()
	if files["../victim"] != "old" || len(files) != 4 {
		t.Errorf("files: %q", files)
	}
}

func TestBadUploadsLeaveNothing(t *testing.T) {
	const limit = 1000
	s, list := newUploadService(t, limit)

	cut := newForm(t, filePart("a", "x"), agePart("1"))
	cut.Body, cut.ContentLength = io.LimitReader(cut.Body, cut.ContentLength-10), -1
	broken := newForm(t, filePart("a", strings.Repeat("x", limit)))
	broken.Body, broken.ContentLength = io.MultiReader(io.LimitReader(broken.Body, limit), failing{}), -1
	around := newForm(t, filePart("a", "x"), formPart{`form-data; name="o"`, strings.Repeat("x", limit+formOverhead)})
	around.ContentLength = -1
	announced := newForm(t, filePart("a", "x"))
	announced.ContentLength = limit + formOverhead + 1
	announced.Body = panicking{} // refused before anything is read
	noBoundary := newForm(t, filePart("a", "x"))
	noBoundary.Fields.Set("Content-Type", "multipart/form-data")
	chunked := newForm(t, filePart("a", strings.Repeat("x", limit+1)))
	chunked.ContentLength = -1

	for _, tc := range []struct {
		name   string
		in     *server.Inbound
		status int
		detail string
	}{
		{"one byte too many", newForm(t, filePart("a", strings.Repeat("x", limit+1))), 413, "at most 1000B"},
		{"one byte too many, length unknown", chunked, 413, "at most 1000B"},
		{"too many by announcement", announced, 413, "at most 1000B"},
		{"too much around the file", around, 413, "at most 1000B"},
		{"no file", newForm(t, agePart("3")), 400, "no part named file"},
		{"two files", newForm(t, filePart("a", "x"), filePart("b", "y")), 400, "two parts named file"},
		{"age too long", newForm(t, filePart("a", "x"), agePart(strings.Repeat("9", maxAge+1))), 400, "longer than 64"},
		{"cut after the file", cut, 400, "cannot be read"},
		{"cut within the file", broken, 400, "cannot be read"},
		{"a control character in the name", newForm(t, filePart("nul\x00byte", "x")), 400, "cannot be read"},
		{"no boundary", noBoundary, 400, "multipart/form-data"},
		{"a form of another kind", newInbound("POST", "/uploadFile", formType, "file=x"), 400, "multipart/form-data"},
	} {
		got := ask(t, s, tc.in)
		if got.Status != tc.status || !strings.Contains(got.Body, tc.detail) {
			t.Errorf("%s: %d %s; want %d with %q", tc.name, got.Status, got.Body, tc.status, tc.detail)
		}
		if left := list(); len(left) > 0 {
			t.Fatalf("%s left %q", tc.name, slices.Collect(maps.Keys(left)))
		}
	}
	if _, got := upload(t, s, newForm(t, filePart("a", strings.Repeat("x", limit)))); got.Status != 200 {
		t.Errorf("exactly the limit: %+v", got)
	}
}

// A full or broken disk is the service's fault and not the caller's.
func TestDiskTroubleIsNotTheCallersFault(t *testing.T) {
	s, _ := newUploadService(t, 0)
	if err := s.uploads.root.Close(); err != nil {
		t.Fatal(err)
	}
	if _, got := upload(t, s, newForm(t, filePart("a", "x"))); got.Status != 500 || strings.Contains(got.Body, "closed") {
		t.Errorf("got %+v", got)
	}
}

func TestUploadsOfOneNameAtOnce(t *testing.T) {
	const n = 50
	s, list := newUploadService(t, 0)
	var wg sync.WaitGroup
	stored := make([]string, n)
	for i := range n {
		in := newForm(t, filePart("same.bin", strings.Repeat(fmt.Sprintf("%04d", i), 20_000)))
		wg.Go(func() {
			got, a := upload(t, s, in)
			if a.Status != 200 {
				t.Errorf("%+v", a)
			}
			stored[i] = got.Stored
		})
	}
	wg.Wait()
	files := list()
	if len(files) != n {
		t.Errorf("%d uploads left %d files", n, len(files))
	}
	for i, name := range stored {
		if files[name] != strings.Repeat(fmt.Sprintf("%04d", i), 20_000) {
			t.Errorf("%s has something else than what upload %d sent", name, i)
		}
	}
}

// An upload is written as it comes: memory does not grow with it.
func TestUploadIsNotHeldInMemory(t *testing.T) {
	s, _ := newUploadService(t, 0)
	const size = 64 << 20
	head := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"big\"\r\n\r\n"
	in := newInbound("POST", "/uploadFile", "multipart/form-data; boundary=x", "")
	in.Body = io.MultiReader(strings.NewReader(head), io.LimitReader(zeros{}, size), strings.NewReader("\r\n--x--\r\n"))
	in.ContentLength = -1
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, a := upload(t, s, in)
	runtime.ReadMemStats(&after)
	if a.Status != 200 {
		t.Fatalf("%+v", a)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("an upload of %d bytes allocated %d", size, got)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestTemporaryFolderGoesAtTheEnd(t *testing.T) {
	u, err := openUploads("", 0)
	if err != nil {
		t.Fatal(err)
	}
	dir := u.root.Name()
	if err := os.WriteFile(filepath.Join(dir, "left"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := u.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

func TestOwnFolderIsMadeAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "one")
	u, err := openUploads(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestUnusableFolderIsFoundAtTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below"), "/proc/self"} {
		u, err := openUploads(dir, 0)
		if err == nil {
			t.Errorf("%s: usable", dir)
			_ = u.close()
		} else if !strings.HasPrefix(err.Error(), "upload folder: ") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func FuzzStoredName(f *testing.F) {
	for _, name := range []string{"", "a.txt", "../../x", `..\x`, "..", ".", "...", "%2e%2e/x", "a\x00b", "\xff", "x" + strings.Repeat("é", 200), strings.Repeat(". ", 200), "e\u0301", "\u202e"} {
		f.Add(name)
	}
	root, err := os.OpenRoot(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = root.Close() })
	f.Fuzz(func(t *testing.T, name string) {
		got := storedName(name)
		if got == "" || len(got) > maxName || got[0] == '.' || !filepath.IsLocal(got) || filepath.Base(got) != got {
			t.Fatalf("storedName(%q) = %q", name, got)
		}
		if strings.ContainsAny(got, "/\\\x00\r\n\x1b") || strings.ToValidUTF8(got, "") != got {
			t.Fatalf("storedName(%q) = %q", name, got)
		}
		if again := storedName(got); again != got {
			t.Fatalf("storedName(%q) = %q, and of that %q", name, got, again)
		}
		for _, n := range []string{got, marked(got, "abcdefghijkl")} {
			file, err := root.OpenFile(n, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatalf("storedName(%q) = %q: %v", name, n, err)
			}
			_ = file.Close()
			if err := root.Remove(n); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzUploadName sends the name as it would come over the wire.
func FuzzUploadName(f *testing.F) {
	s, list := newUploadService(f, 0)
	for _, d := range []string{
		`form-data; name="file"; filename="../x"`,
		`form-data; name="file"; filename*=UTF-8''..%2F..%2Fx`,
		`form-data; name="file"; filename="a"; filename="b"`,
		"form-data; name=file; filename=\x00",
		`form-data; name="file"; filename*0="a/"; filename*1="b"`,
	} {
		f.Add(d)
	}
	f.Fuzz(func(t *testing.T, disposition string) {
		if strings.ContainsAny(disposition, "\r\n") {
			t.Skip("ends the field")
		}
		got, a := upload(t, s, newForm(t, formPart{disposition, "content"}))
		want := map[string]string{}
		switch a.Status {
		case 200:
			want[got.Stored] = "content"
		case 400:
		default:
			t.Fatalf("%q: %+v", disposition, a)
		}
		if diff := cmp.Diff(want, list()); diff != "" {
			t.Fatalf("%q: (-want +got)\n%s", disposition, diff)
		}
		if a.Status == 200 {
			if err := s.uploads.root.Remove(got.Stored); err != nil {
				t.Fatal(err)
			}
		}
	})
}
