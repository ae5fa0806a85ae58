package image_test

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/fairshard/fairshard/tests/cluster/image"
)

func write(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// contents reads an image file back: mode and content by path.
func contents(t *testing.T, file string) (entrypoint []string, files map[string]string) {
	t.Helper()
	img, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	r := tar.NewReader(mutate.Extract(img))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return config.Config.Entrypoint, files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files["/"+h.Name] = os.FileMode(h.Mode).String() + " " + string(data)
	}
}

func TestImageHoldsTheFilesAndIsReproducible(t *testing.T) {
	dir := t.TempDir()
	program := write(t, dir+"/prog", "#!", 0o755)
	write(t, dir+"/tree/sub/b", "b", 0o644)
	if err := os.Symlink(program, dir+"/tree/link"); err != nil {
		t.Fatal(err)
	}
	spec := image.Spec{
		Name: "localhost/x:dev", Entrypoint: []string{"/bin/prog", "-v"},
		Files: []image.File{{Host: program, Path: "/bin/prog"}, {Host: dir + "/tree", Path: "/data"}},
	}
	one, two := dir+"/one.tar", dir+"/two.tar"
	for _, out := range []string{one, two} {
		if err := image.Write(spec, out); err != nil {
			t.Fatal(err)
		}
	}
	entrypoint, files := contents(t, one)
	if !slices.Equal(entrypoint, spec.Entrypoint) {
		t.Errorf("entrypoint %v", entrypoint)
	}
	for path, want := range map[string]string{
		"/bin/prog": "-rwxr-xr-x #!", "/data/sub/b": "-rw-r--r-- b", "/data/link": "-rwxr-xr-x #!",
	} {
		if files[path] != want {
			t.Errorf("%s: %q, want %q (all: %v)", path, files[path], want, files)
		}
	}
	a, err1 := os.ReadFile(one)
	b, err2 := os.ReadFile(two)
	if err1 != nil || err2 != nil || !slices.Equal(a, b) {
		t.Error("two builds of the same files differ")
	}
}

func TestImageRefusesBadInput(t *testing.T) {
	dir := t.TempDir()
	program := write(t, dir+"/prog", "#!", 0o755)
	for name, spec := range map[string]image.Spec{
		"name without tag": {Name: "localhost/x", Files: []image.File{{Host: program, Path: "/p"}}},
		"relative path":    {Name: "localhost/x:dev", Files: []image.File{{Host: program, Path: "p"}}},
		"missing file":     {Name: "localhost/x:dev", Files: []image.File{{Host: dir + "/none", Path: "/p"}}},
	} {
		if err := image.Write(spec, dir+"/out.tar"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := os.Stat(dir + "/out.tar"); !os.IsNotExist(err) {
		t.Errorf("a failed build left a file: %v", err)
	}
}

func TestLibrariesOfADynamicProgram(t *testing.T) {
	const shell = "/bin/sh"
	files, err := image.WithLibraries([]image.File{{Host: shell, Path: "/sh"}}, "/sh")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 3 {
		t.Errorf("files %v, want the shell, its loader and libc", files)
	}
	if _, err := image.WithLibraries(nil, "/sh"); err == nil {
		t.Error("libraries of a file that was not added: no error")
	}
}
