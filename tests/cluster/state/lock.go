package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Lock makes the caller the only command that changes the cluster at dir. The
// kernel releases it when the process ends, however it ends. onWait is called
// once when somebody else holds it.
func Lock(dir string, onWait func()) (release func(), err error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("create cluster directory: %w", err)
	}
	for {
		f, err := lockFile(filepath.Join(dir, "lock"), onWait)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, errStale) {
			return nil, fmt.Errorf("lock cluster %s: %w", dir, err)
		}
		if err := os.MkdirAll(dir, dirMode); err != nil {
			return nil, fmt.Errorf("create cluster directory: %w", err)
		}
	}
}

// errStale means that `down` removed the lock file while we waited for it.
var errStale = errors.New("lock file was removed")

func lockFile(path string, onWait func()) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errStale
	}
	if err != nil {
		return nil, err
	}
	fd := int(f.Fd())
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		onWait()
		if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	mine, err1 := f.Stat()
	now, err2 := os.Stat(path)
	if err1 != nil || err2 != nil || !os.SameFile(mine, now) {
		return nil, errors.Join(errStale, f.Close())
	}
	return f, nil
}
