package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
	"github.com/isthmus-mesh/isthmus/source/file/documents"
)

// errGone means that a file disappeared since its folder was read.
var errGone = errors.New("gone")

// readFiles reads files in parallel. A file with the content of its known version is
// not parsed again: the known version is returned. Files that disappeared in the
// meantime are left out.
func readFiles(
	ctx context.Context, files map[string]entry, known *documents.Set, o istio.Options, memory *budget.Budget,
) (map[string]*documents.Version, error) {
	var mu sync.Mutex
	out := make(map[string]*documents.Version, len(files))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for place, e := range files {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			v, err := read(ctx, place, e, known.Version(place), o, memory)
			if errors.Is(err, errGone) {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			out[place] = v
			return err
		})
	}
	err := group.Wait() // only of ctx: an unreadable file has a version, too
	return out, cmp.Or(ctx.Err(), err)
}

// read reads one file, once there is memory for its text and its largest possible
// document. It fails if the file is gone, or if ctx ends.
func read(
	ctx context.Context, place string, e entry, known *documents.Version, o istio.Options, memory *budget.Budget,
) (*documents.Version, error) {
	size := sizeOf(e)
	give, err := memory.Take(ctx, size+min(yamlpos.Allowance(int(size)), yamlpos.MaxMemory))
	if err != nil {
		return nil, err
	}
	defer give()
	text, err := content(e)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && !e.linked {
			return nil, errGone
		}
		v := documents.Unreadable(place, "cannot be read: "+bare(err).Error(), "fix it, or remove it")
		if v.Same(known) {
			return known, nil
		}
		return v, nil
	}
	if known.Reads(text) {
		return known, nil
	}
	return documents.Parse(place, text, o, memory.Bytes(yamlpos.MaxMemory)), nil
}

// sizeOf returns the bytes that are read of a file, unless more is appended meanwhile.
func sizeOf(e entry) int64 {
	if e.err != nil {
		return 0
	}
	info, err := os.Stat(e.path)
	if err != nil {
		return 0
	}
	return min(info.Size(), yamlpos.MaxSize)
}

// content returns the text of a file. If the file grows too large meanwhile, the text
// has one byte more than the limit; the parser then rejects it.
func content(e entry) ([]byte, error) {
	if e.err != nil {
		return nil, e.err
	}
	f, err := os.OpenFile(e.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a pipe
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeNamedPipe != 0 {
		return nil, errIrregular
	}
	if info.Size() > yamlpos.MaxSize {
		return nil, fmt.Errorf("its size of %d MiB exceeds the limit of %d MiB; split it", info.Size()>>20, yamlpos.MaxSize>>20)
	}
	text := make([]byte, 0, info.Size()+1)
	return readInto(text, io.LimitReader(f, yamlpos.MaxSize+1))
}

func readInto(text []byte, r io.Reader) ([]byte, error) {
	for {
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
		n, err := r.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
