package gpusim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// The C compiler and this file must agree on every field, not only on the ones asserted in table.h.
func TestTableLayoutAgreesWithC(t *testing.T) {
	var r record
	var h header
	var p profileRecord
	var in instanceRecord
	var proc processRecord
	var f faultRecord
	var e eventRecord
	goSide := map[string]uintptr{
		"gpu.uuid": unsafe.Offsetof(r.UUID), "gpu.name": unsafe.Offsetof(r.Name), "gpu.total": unsafe.Offsetof(r.Total),
		"gpu.reserved": unsafe.Offsetof(r.Reserved), "gpu.used": unsafe.Offsetof(r.Used), "gpu.domain": unsafe.Offsetof(r.Domain),
		"gpu.bus": unsafe.Offsetof(r.Bus), "gpu.device": unsafe.Offsetof(r.Device), "gpu.minor": unsafe.Offsetof(r.Minor),
		"gpu.numa": unsafe.Offsetof(r.NUMA), "gpu.architecture": unsafe.Offsetof(r.Architecture), "gpu.cc_major": unsafe.Offsetof(r.CCMajor),
		"gpu.cc_minor": unsafe.Offsetof(r.CCMinor), "gpu.mig_capable": unsafe.Offsetof(r.MIGCapable), "gpu.mig_enabled": unsafe.Offsetof(r.MIGEnabled),
		"gpu.pci_device_id": unsafe.Offsetof(r.PCIDeviceID), "table.magic": unsafe.Offsetof(h.Magic), "table.version": unsafe.Offsetof(h.Version),
		"table.count": unsafe.Offsetof(h.Count), "table.driver": unsafe.Offsetof(h.Driver), "table.nvml": unsafe.Offsetof(h.NVML),
		"gpu.lost": unsafe.Offsetof(r.Lost), "table.cuda_version": unsafe.Offsetof(h.CUDAVersion),
		"gpu.absent": unsafe.Offsetof(r.Absent), "gpu.recovery": unsafe.Offsetof(r.Recovery), "gpu.remap_pending": unsafe.Offsetof(r.RemapPending),
		"gpu.ecc_aggregate": unsafe.Offsetof(r.ECCAggregate), "gpu.process_count": unsafe.Offsetof(r.ProcessCount), "gpu.made": unsafe.Offsetof(r.Made),
		"gpu.profiles": unsafe.Offsetof(r.Profiles), "gpu.instances": unsafe.Offsetof(r.Instances), "gpu.processes": unsafe.Offsetof(r.Processes),
		"table.fault_count": unsafe.Offsetof(h.FaultCount), "table.event_count": unsafe.Offsetof(h.EventCount),
		"profile.most": unsafe.Offsetof(p.Most), "profile.placements": unsafe.Offsetof(p.Placements), "profile.memory": unsafe.Offsetof(p.Memory),
		"instance.start": unsafe.Offsetof(in.Start), "instance.ci_profile": unsafe.Offsetof(in.CIProfile), "instance.uuid": unsafe.Offsetof(in.UUID),
		"process.pid": unsafe.Offsetof(proc.PID), "process.ci": unsafe.Offsetof(proc.CI),
		"fault.gpu": unsafe.Offsetof(f.GPU), "fault.delay": unsafe.Offsetof(f.Delay), "fault.left": unsafe.Offsetof(f.Left),
		"event.data": unsafe.Offsetof(e.Data), "event.ci": unsafe.Offsetof(e.CI),
	}
	var c strings.Builder
	c.WriteString("#include <stdio.h>\n#include \"table.h\"\nint main(void) {\n")
	for name := range goSide {
		s, f, _ := strings.Cut(name, ".")
		fmt.Fprintf(&c, "printf(\"%s %%zu\\n\", offsetof(struct gpusim_%s, %s));\n", name, s, f)
	}
	c.WriteString("return 0;}\n")
	dir := t.TempDir()
	src := filepath.Join(dir, "l.c")
	if err := os.WriteFile(src, []byte(c.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-Ilib", "-o", filepath.Join(dir, "l"), src).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	out, err := exec.Command(filepath.Join(dir, "l")).Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		var name string
		var off uintptr
		if _, err := fmt.Sscan(line, &name, &off); err != nil {
			t.Fatal(err)
		}
		if goSide[name] != off {
			t.Errorf("%s: C %d, Go %d", name, off, goSide[name])
		}
		n++
	}
	if n != len(goSide) {
		t.Errorf("%d offsets compared, want %d", n, len(goSide))
	}
}
