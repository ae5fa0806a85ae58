package image

import (
	"slices"
	"testing"
)

func TestParseLdd(t *testing.T) {
	files, missing := parseLdd(`	linux-vdso.so.1 (0x00007ffd)
	libseccomp.so.2 => /lib/x86_64-linux-gnu/libseccomp.so.2 (0x00007f1)
	libgone.so.1 => not found
	libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f2)
	/lib64/ld-linux-x86-64.so.2 (0x00007f3)
`)
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	want := []string{"/lib/x86_64-linux-gnu/libseccomp.so.2", "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}
	if !slices.Equal(paths, want) {
		t.Errorf("files %v, want %v", paths, want)
	}
	if !slices.Equal(missing, []string{"libgone.so.1"}) {
		t.Errorf("missing %v", missing)
	}
}
