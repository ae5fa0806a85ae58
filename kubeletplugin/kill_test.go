package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairshard/fairshard/driver/ledger"
	"github.com/fairshard/fairshard/driver/partition"
)

// childDir names the folder of the node to a copy of this test that gets killed.
const childDir = "FAIRSHARD_TEST_KILL_DIR"

// The process is killed with SIGKILL while it prepares and unprepares fifty
// claims. A new one takes over: what it knows is complete, nothing is without a
// record, and everything can be prepared and released.
func TestSIGKILL(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		workUntilKilled(t, dir)
		return
	}
	n := newNode(t)
	for round := range 3 {
		child := exec.Command(os.Args[0], "-test.run=^TestSIGKILL$")
		child.Env = append(os.Environ(), childDir+"="+n.dir)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		started := filepath.Join(n.dir, "started")
		n.eventually("the child works", func() bool { _, err := os.Stat(started); return err == nil })
		time.Sleep(time.Duration(30+50*round) * time.Millisecond) // The moment of the kill; nothing waits for it.
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait()
		_ = os.Remove(started)
		takeOver(t, n, round == 2)
	}
}

func workUntilKilled(t *testing.T, dir string) {
	t.Helper()
	n := &testNode{t: t, dir: dir}
	p := offline(t, n)
	if err := os.WriteFile(filepath.Join(dir, "started"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			for range 1000 {
				_, _ = p.prepare(shareOf(fmt.Sprintf("k%02d", i), 5e9, i%8))
				_ = p.unprepare(fmt.Sprintf("k%02d", i))
			}
		})
	}
	wait.Wait()
}

// offline is a plugin without services, on the folders of n.
func offline(t *testing.T, n *testNode) *Plugin {
	t.Helper()
	p, err := newPlugin(context.Background(), n.config(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.setHardware(offered(partition.Build(eightH100(), partition.Default())))
	return p
}

func takeOver(t *testing.T, n *testNode, release bool) {
	t.Helper()
	p := offline(t, n)
	known := map[string]bool{}
	for _, e := range p.entries() {
		known[e.Claim.UID] = true
		if e.Phase == ledger.PhaseLost {
			t.Errorf("the record of %s was torn", e.Claim.UID)
		}
		if e.Phase != ledger.PhasePrepared {
			continue
		}
		for _, file := range filesOf(e.Claim.UID) {
			if _, err := os.Stat(filepath.Join(n.dir, file)); err != nil {
				t.Errorf("prepared claim %s: %v", e.Claim.UID, err)
			}
		}
	}
	for _, file := range n.claimFiles() {
		uid := file[strings.LastIndex(file, "k"):][:3]
		if strings.HasSuffix(file, "limits") {
			uid = filepath.Base(filepath.Dir(file))
		}
		if !known[uid] {
			t.Errorf("%s has no record", file)
		}
	}
	for i := range 50 {
		uid := fmt.Sprintf("k%02d", i)
		if _, err := p.prepare(shareOf(uid, 5e9, i%8)); err != nil {
			t.Errorf("prepare %s: %v", uid, err)
		}
		if err := p.unprepare(uid); release && err != nil {
			t.Errorf("unprepare %s: %v", uid, err)
		}
	}
	if left := n.claimFiles(); release && len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// dying fails every save after the first n, as a full disk does.
type dying struct {
	records
	left int
}

func (d *dying) Save(e ledger.Entry) error {
	if d.left--; d.left < 0 {
		return errors.New("no space left on device")
	}
	return d.records.Save(e)
}

func TestAFullDiskFailsTheClaimAndNothingElse(t *testing.T) {
	for saves := range 2 {
		n := newNode(t)
		p := offline(t, n)
		healthy := p.records
		p.records = &dying{healthy, saves}
		c := shareOf("c", 40e9, 0)
		if _, err := p.prepare(c); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("after %d saves: got %v", saves, err)
		}
		p.records = healthy
		if _, err := p.prepare(c); err != nil {
			t.Errorf("after %d saves: the next try must work: %v", saves, err)
		}
		if err := p.unprepare("c"); err != nil || len(n.claimFiles()) != 0 {
			t.Errorf("after %d saves: %v, left behind %v", saves, err, n.claimFiles())
		}
	}
}
