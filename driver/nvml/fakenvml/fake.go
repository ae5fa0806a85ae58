package fakenvml

import (
	"sync"

	"github.com/fairshard/fairshard/driver/inventory"
)

// Library is a driver library in memory.
type Library struct {
	mu   sync.Mutex
	inv  inventory.Inventory // guarded by mu
	fail error               // guarded by mu
}

// New returns a library that knows the given GPUs.
func New(driverVersion string, gpus ...inventory.GPU) *Library {
	return &Library{inv: inventory.New(driverVersion, gpus)}
}

// Fail makes Inventory return err together with what it knows; nil ends that.
func (l *Library) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

// Inventory returns the GPUs.
func (l *Library) Inventory() (inventory.Inventory, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return inventory.New(l.inv.DriverVersion, l.inv.GPUs), l.fail
}

// Close does nothing.
func (l *Library) Close() {}
