package daemon

import (
	"io"
	"os"
	"strings"
)

// The end of a log that is shown: enough for a Go panic's first frames.
const (
	tailLines = 20
	tailBytes = 16 << 10
)

// Tail returns the last lines of a log file, indented, or why it cannot be read.
func Tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "    (" + err.Error() + ")"
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := f.Seek(-tailBytes, io.SeekEnd); err != nil {
			return "    (" + err.Error() + ")"
		}
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return "    (" + err.Error() + ")"
	}
	return lastLines(string(data))
}

func lastLines(text string) string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return "    (the log is empty)"
	}
	lines := strings.Split(text, "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return "    " + strings.Join(lines, "\n    ")
}
