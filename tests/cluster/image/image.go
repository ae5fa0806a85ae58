package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// File is one file of this machine and its place in the image.
type File struct {
	// Host is a file or a folder, which is taken with everything in it.
	Host string
	// Path is absolute, inside the image.
	Path string
}

// Spec says what an image holds.
type Spec struct {
	// Name is the reference that pods use, with a tag.
	Name       string
	Files      []File
	Entrypoint []string
	// Env holds NAME=VALUE.
	Env []string
}

// Write builds the image and writes it to out.
func Write(spec Spec, out string) error {
	ref, err := name.NewTag(spec.Name, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("parse image name: %w", err)
	}
	img, err := Build(spec)
	if err != nil {
		return err
	}
	tmp := out + ".tmp"
	if err := tarball.WriteToFile(tmp, ref, img); err != nil {
		return fmt.Errorf("write image %s: %w", spec.Name, err)
	}
	if err := os.Rename(tmp, out); err != nil {
		return fmt.Errorf("write image %s: %w", spec.Name, err)
	}
	return nil
}

// Build returns the image.
func Build(spec Spec) (v1.Image, error) {
	data, err := layer(spec.Files)
	if err != nil {
		return nil, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("make layer: %w", err)
	}
	img, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return nil, fmt.Errorf("append layer: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read image configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Entrypoint = spec.Entrypoint
	config.Config.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}, spec.Env...)
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return nil, fmt.Errorf("set image configuration: %w", err)
	}
	return img, nil
}

// layer is the tar of the files, with the folders above them.
func layer(files []File) ([]byte, error) {
	entries, err := collect(files)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	dirs := map[string]bool{"/": true}
	for _, e := range entries {
		if err := writeParents(w, dirs, e.Path); err != nil {
			return nil, err
		}
		if err := writeFile(w, e); err != nil {
			return nil, fmt.Errorf("add %s as %s: %w", e.Host, e.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("finish layer: %w", err)
	}
	return buf.Bytes(), nil
}

// collect opens up folders, and sorts by path. Of two files for one path the
// last one given wins.
func collect(files []File) ([]File, error) {
	byPath := map[string]File{}
	for _, f := range files {
		if !path.IsAbs(f.Path) {
			return nil, fmt.Errorf("add %s: path %q in the image must be absolute", f.Host, f.Path)
		}
		err := filepath.WalkDir(f.Host, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(f.Host, p)
			if err != nil {
				return err
			}
			target := path.Join(f.Path, filepath.ToSlash(rel))
			byPath[target] = File{Host: p, Path: target}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("add %s: %w", f.Host, err)
		}
	}
	entries := make([]File, 0, len(byPath))
	for _, f := range byPath {
		entries = append(entries, f)
	}
	slices.SortFunc(entries, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return entries, nil
}

func writeParents(w *tar.Writer, done map[string]bool, file string) error {
	var missing []string
	for dir := path.Dir(file); !done[dir]; dir = path.Dir(dir) {
		missing = append(missing, dir)
		done[dir] = true
	}
	slices.Reverse(missing)
	for _, dir := range missing {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: 0o755}
		if err := w.WriteHeader(header); err != nil {
			return fmt.Errorf("add folder %s: %w", dir, err)
		}
	}
	return nil
}

// writeFile follows links: an image has no use for links to files it lacks.
func writeFile(w *tar.Writer, f File) error {
	in, err := os.Open(f.Host)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: f.Path[1:], Size: info.Size(), Mode: int64(info.Mode().Perm()),
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}
