package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// sortedControl puts the files of an apk's control part in one order, and gives them one time. nfpm takes
// the order from a map, and the time from the disk, so two packages of the same files would differ. An apk is two gzip streams after another: the control part, a
// tar without its end, and the files, whose hash stands in the control part and does not change here.
func sortedControl(apk []byte, at time.Time) ([]byte, error) {
	in := bytes.NewReader(apk)
	z, err := gzip.NewReader(in) // takes no byte too many from a bytes.Reader
	if err != nil {
		return nil, fmt.Errorf("control part: %w", err)
	}
	z.Multistream(false)
	type file struct {
		header *tar.Header
		data   []byte
	}
	var all []file
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("control part: %w", err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("control part: %s: %w", h.Name, err)
		}
		all = append(all, file{h, data})
	}
	if _, err := io.Copy(io.Discard, z); err != nil {
		return nil, fmt.Errorf("control part: %w", err)
	}
	if len(all) == 0 || all[0].header.Name != ".PKGINFO" {
		return nil, errors.New("control part: the first file is not .PKGINFO")
	}
	slices.SortFunc(all[1:], func(a, b file) int { return strings.Compare(a.header.Name, b.header.Name) })
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	for _, f := range all {
		f.header.ModTime = at
		if err := w.WriteHeader(f.header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Flush(), compressed.Close()); err != nil {
		return nil, err
	}
	_, err = in.WriteTo(&out)
	return out.Bytes(), err
}
