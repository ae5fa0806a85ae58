package namespace

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// Bind shows the folder Source at the path Target.
type Bind struct {
	Source, Target string
}

// String is the form that ParseBind reads.
func (b Bind) String() string { return b.Source + "=" + b.Target }

// ParseBind reads "SOURCE=TARGET".
func ParseBind(s string) (Bind, error) {
	source, target, ok := strings.Cut(s, "=")
	if !ok || source == "" || target == "" {
		return Bind{}, fmt.Errorf("parse bind %q: want SOURCE=TARGET", s)
	}
	return Bind{Source: source, Target: target}, nil
}

// ExecNew replaces this process by argv in a new mount namespace with the binds.
// Targets that are missing are created on the host as empty folders. It returns
// only when it fails.
func ExecNew(binds []Bind, argv []string) error {
	for _, b := range binds {
		if err := os.MkdirAll(b.Target, 0o755); err != nil {
			return fmt.Errorf("create mount point: %w", err)
		}
	}
	mustBeFirstThread()
	// The namespace belongs to the thread; the exec below makes it the process's.
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("create mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cut the mount namespace off from the host: %w", err)
	}
	for _, b := range binds {
		if err := unix.Mount(b.Source, b.Target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind %s to %s: %w", b.Source, b.Target, err)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts inside the namespace: %w", err)
	}
	return replace(argv)
}

// ExecIn replaces this process by argv in the mount namespace of process pid. It
// returns only when it fails.
func ExecIn(pid int, argv []string) error {
	mustBeFirstThread()
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open mount namespace of process %d: %w", pid, err)
	}
	// A thread that shares its root and folder with others cannot change namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("separate the thread's file system view: %w", err)
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter mount namespace of process %d: %w", pid, err)
	}
	return replace(argv)
}

func mustBeFirstThread() {
	if unix.Gettid() != os.Getpid() {
		panic("broken invariant: changing the mount namespace outside of the first thread")
	}
}

func replace(argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("find program: %w", err)
	}
	if err := unix.Exec(path, argv, os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}
