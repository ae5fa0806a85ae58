package kubeletplugin

import "sync"

// claimLocks is one lock per claim, kept only while somebody wants it.
type claimLocks struct {
	mu   sync.Mutex
	held map[string]*claimLock // guarded by mu
}

type claimLock struct {
	sync.Mutex
	users int // guarded by claimLocks.mu
}

// lock takes the lock of a claim and returns how to give it back.
func (l *claimLocks) lock(uid string) func() {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*claimLock{}
	}
	c := l.held[uid]
	if c == nil {
		c = &claimLock{}
		l.held[uid] = c
	}
	c.users++
	l.mu.Unlock()
	c.Lock()
	return func() {
		c.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if c.users--; c.users == 0 {
			delete(l.held, uid)
		}
	}
}
