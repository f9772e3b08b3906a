package backend

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"

	"gatebench/clients"
	"gatebench/internal/conf"
)

// uploads is the folder of uploaded files. A file is written under a hidden name
// of its own and linked under its visible one when it is whole: so nobody sees
// half of one, and nothing is ever overwritten, since link(2) neither replaces a
// name nor follows a symbolic link. os.Root keeps all of it inside the folder.
type uploads struct {
	root    *os.Root
	limit   int64  // bytes of one file, 0 unbounded
	remove  string // the folder to remove at the end, "" to leave it
	buffers sync.Pool
}

func openUploads(dir string, limit conf.Size) (*uploads, error) {
	u := &uploads{limit: int64(limit)}
	u.buffers.New = func() any { return new([32 << 10]byte) }
	if err := u.open(dir); err != nil {
		return nil, fmt.Errorf("upload folder: %w", err)
	}
	if err := u.tryOut(); err != nil {
		return nil, errors.Join(fmt.Errorf("upload folder: %w", err), u.close())
	}
	return u, nil
}

func (u *uploads) open(dir string) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "gatebench-uploads-"); err != nil {
			return err
		}
		u.remove = dir
	} else if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	u.root, err = os.OpenRoot(dir)
	return err
}

// tryOut finds out at the start, not at the first upload, that the folder cannot
// be written to.
func (u *uploads) tryOut() error {
	f, err := u.create()
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), u.root.Remove(f.hidden))
}

func (u *uploads) close() error {
	err := u.root.Close()
	if u.remove != "" {
		err = errors.Join(err, os.RemoveAll(u.remove))
	}
	return err
}

// A receipt is the answer to an upload.
type receipt struct {
	Stored string `json:"stored"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Age    string `json:"age"`
}

// formOverhead is what a form may hold besides the file.
const formOverhead = 1 << 20

// receive stores the file of a multipart form. The parts may come in any order;
// those that are neither file nor age are passed over.
func (u *uploads) receive(r request) (_ *clients.Response, err error) {
	form, err := u.form(r)
	if err != nil {
		return nil, err
	}
	var got receipt
	// A form that turns out bad after its file leaves nothing behind.
	defer func() {
		if err != nil && got.Stored != "" {
			err = errors.Join(err, u.root.Remove(got.Stored))
		}
	}()
	for {
		part, err := form.NextPart()
		switch {
		case errors.Is(err, io.EOF) && got.Stored == "":
			return nil, refuse(http.StatusBadRequest, "the form has no part named file")
		case errors.Is(err, io.EOF):
			return clients.NewResponse(http.StatusOK, jsonFields, encode(got)), nil
		case err != nil:
			return nil, bodyError(err)
		}
		switch part.FormName() {
		case "file":
			if got.Stored != "" {
				return nil, refuse(http.StatusBadRequest, "the form has two parts named file; send one")
			}
			if err := u.store(part, &got); err != nil {
				return nil, err
			}
		case "age":
			if got.Age, err = readAge(part); err != nil {
				return nil, err
			}
		}
	}
}

// form opens the body as a multipart form. It is read as it comes, never held.
func (u *uploads) form(r request) (*multipart.Reader, error) {
	kind, params, err := mime.ParseMediaType(r.Fields.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" || r.Body == nil {
		return nil, refuse(http.StatusBadRequest, "send the file as the part named file of a multipart/form-data body")
	}
	body := r.Body
	if u.limit > 0 {
		if r.ContentLength > u.limit+formOverhead {
			return nil, u.tooLarge()
		}
		body = &bounded{r: body, left: u.limit + formOverhead, beyond: u.tooLarge()}
	}
	return multipart.NewReader(body, params["boundary"]), nil
}

func (u *uploads) tooLarge() error {
	return refuse(http.StatusRequestEntityTooLarge, "a file may have at most %v", conf.Size(u.limit))
}

// maxAge bounds the text of an age.
const maxAge = 64

// readAge takes the age as the text that it is: the service only gives it back.
func readAge(part io.Reader) (string, error) {
	age, err := io.ReadAll(io.LimitReader(part, maxAge+1))
	if err != nil {
		return "", bodyError(err)
	}
	if len(age) > maxAge {
		return "", refuse(http.StatusBadRequest, "the age is longer than %d bytes", maxAge)
	}
	return string(age), nil
}

// store writes one part to disk and fills in all but the age.
func (u *uploads) store(part *multipart.Part, got *receipt) (err error) {
	f, err := u.create()
	if err != nil {
		return storageError(err)
	}
	defer func() {
		// The hidden name goes either way: a whole file has its own by now.
		if e := errors.Join(f.Close(), u.root.Remove(f.hidden)); e != nil && err == nil {
			err = storageError(e)
		}
	}()
	digest := sha256.New()
	got.Size, err = u.copy(io.MultiWriter(f, digest), part)
	if err != nil {
		return err
	}
	got.SHA256 = hex.EncodeToString(digest.Sum(nil))
	got.Stored, err = u.publish(f.hidden, storedName(fileName(part)))
	return err
}

// fileName is the name as sent; part.FileName would have dropped a path by this
// system's separator alone.
func fileName(part *multipart.Part) string {
	_, params, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	return params["filename"]
}

// copy copies at most limit bytes and tells whose fault it is if it fails.
func (u *uploads) copy(w io.Writer, part io.Reader) (int64, error) {
	src := &bounded{r: part, left: u.limit, beyond: u.tooLarge()}
	if u.limit == 0 {
		src.left = 1<<63 - 1
	}
	buf := u.buffers.Get().(*[32 << 10]byte)
	defer u.buffers.Put(buf)
	n, err := io.CopyBuffer(w, src, buf[:])
	switch {
	case err == nil:
		return n, nil
	case src.err != nil:
		return n, bodyError(src.err)
	}
	return n, storageError(err)
}

// hiddenFile is an upload that is not whole yet.
type hiddenFile struct {
	*os.File
	hidden string // its name in the folder
}

// create makes a file under a name that storedName never gives.
func (u *uploads) create() (hiddenFile, error) {
	name := ".upload-" + rand.Text()
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return hiddenFile{f, name}, err
}

// publish gives the file hidden a visible name: the wanted one if it is free,
// else one with a mark.
func (u *uploads) publish(hidden, wanted string) (string, error) {
	name := wanted
	for {
		err := u.root.Link(hidden, name)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", storageError(err)
		}
		// Not a running number: finding the next free one costs more with
		// every upload of that name, and a load run sends thousands.
		name = marked(wanted, strings.ToLower(rand.Text()[:12]))
	}
}

// storageError is a failure of the disk, not of the caller.
func storageError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return refuse(http.StatusInsufficientStorage, "the upload folder is full")
	}
	return fmt.Errorf("store upload: %w", err)
}

// bounded reads at most left bytes, gives beyond for the one after them, and
// keeps the error it gave: so a failed copy can tell its source from its
// destination.
type bounded struct {
	r      io.Reader
	left   int64
	beyond error
	err    error
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		p = p[:b.left+1] // one more tells a body that ends here from a longer one
	}
	n, err := b.r.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), b.beyond
	}
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}
