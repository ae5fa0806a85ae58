package image

import (
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// Libraries returns the loader and the shared libraries that the program needs,
// each at the path where the loader will look for it. A static program needs none.
func Libraries(program string) ([]File, error) {
	out, err := exec.Command("ldd", program).CombinedOutput()
	text := string(out)
	if strings.Contains(text, "not a dynamic executable") || strings.Contains(text, "statically linked") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find libraries of %s: %w\n%s", program, err, text)
	}
	files, missing := parseLdd(text)
	if len(missing) > 0 {
		return nil, fmt.Errorf("find libraries of %s: not on this machine: %s", program, strings.Join(missing, ", "))
	}
	return files, nil
}

// parseLdd reads lines such as "libc.so.6 => /lib/libc.so.6 (0x...)" and
// "/lib64/ld-linux-x86-64.so.2 (0x...)"; the kernel's vDSO has no file.
func parseLdd(text string) (files []File, missing []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " (0x")
		lib, file, arrow := strings.Cut(line, " => ")
		if !arrow {
			file = lib
		}
		switch {
		case file == "not found":
			missing = append(missing, lib)
		case path.IsAbs(file):
			files = append(files, File{Host: file, Path: path.Clean(file)})
		}
	}
	slices.Sort(missing)
	return files, missing
}

// WithLibraries adds the libraries of the file at the image path.
func WithLibraries(files []File, imagePath string) ([]File, error) {
	for _, f := range files {
		if f.Path != imagePath {
			continue
		}
		libs, err := Libraries(f.Host)
		if err != nil {
			return nil, err
		}
		return append(files, libs...), nil
	}
	return nil, fmt.Errorf("find libraries of %s: no file was added at this path", imagePath)
}
