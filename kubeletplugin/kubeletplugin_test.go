package kubeletplugin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairshard/fairshard/driver/isolation"
	"github.com/fairshard/fairshard/driver/partition"
)

func filesOf(uid string) []string {
	return []string{
		"cdi/gpu.fairshard.dev-claim_" + uid + ".json",
		"p/gpu.fairshard.dev/claims/" + uid + ".json",
		"p/gpu.fairshard.dev/claims/" + uid + "/limits",
	}
}

func TestPrepareAndUnprepare(t *testing.T) {
	n := newNode(t)
	shard := shareOf("shard", 40e9, 0, 1, 2, 3, 4, 5, 6, 7)
	n.create(shard)
	r := n.startReady()

	first := r.mustPrepare(shard)
	if len(first.Devices) != 8 || *first.Devices[7].ShareId != "s-shard-7" {
		t.Fatalf("got %+v", first)
	}
	if second := r.mustPrepare(shard); !proto.Equal(first, second) {
		t.Errorf("the second answer differs:\n%v\n%v", first, second)
	}
	if got := n.claimFiles(); !slices.Equal(got, filesOf("shard")) {
		t.Errorf("got %v", got)
	}
	content, err := os.ReadFile(filepath.Join(n.dir, filesOf("shard")[2]))
	if err != nil {
		t.Fatal(err)
	}
	limits, err := isolation.Parse(content)
	if err != nil || len(limits.GPUs) != 8 || limits.GPUs[0].Bytes != 40e9 || limits.Name != "claim-shard" {
		t.Errorf("got %+v, %v", limits, err)
	}
	for range 2 {
		if err := r.unprepare(shard); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.claimFiles(); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestRestartInBetween(t *testing.T) {
	n := newNode(t)
	whole, share := wholeGPU("whole", 7), shareOf("share", 40e9, 0)
	n.create(whole, share)
	r := n.startReady()
	before := []proto.Message{r.mustPrepare(whole), r.mustPrepare(share)}
	r.stop()

	// A reboot empties the CDI folder, and the driver library is not back yet.
	if err := os.RemoveAll(filepath.Join(n.dir, "cdi")); err != nil {
		t.Fatal(err)
	}
	n.library.absent.Store(true)
	r = n.start(n.config())
	if got, want := n.claimFiles(), 6; len(got) != want {
		t.Errorf("want %d files, got %v", want, got)
	}
	after := []proto.Message{r.mustPrepare(whole), r.mustPrepare(share)}
	for i := range before {
		if !proto.Equal(before[i], after[i]) {
			t.Errorf("the answer differs after a restart:\n%v\n%v", before[i], after[i])
		}
	}
	other := shareOf("other", 1e9, 3)
	n.create(other)
	if _, err := r.prepare(other); err == nil || !strings.Contains(err.Error(), "not known yet") {
		t.Errorf("want a clear error without the driver library, got %v", err)
	}
	if err := r.unprepare(whole); err != nil {
		t.Errorf("unprepare must work without the driver library: %v", err)
	}
	n.library.absent.Store(false)
	n.eventually("the driver library is found", func() bool { _, err := r.prepare(other); return err == nil })
}

func TestACDIFileThatVanishedIsWrittenAgain(t *testing.T) {
	n := newNode(t)
	share := shareOf("share", 40e9, 0)
	n.create(share)
	r := n.startReady()
	r.mustPrepare(share)
	path := filepath.Join(n.dir, filesOf("share")[0])
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r.mustPrepare(share)
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("got %s, %v", after, err)
	}
}

func TestRefusalsNameTheHolder(t *testing.T) {
	n := newNode(t)
	a, b, whole := shareOf("a", 40<<30, 0), shareOf("b", 40<<30, 0), wholeGPU("whole", 0)
	n.create(a, b, whole)
	r := n.startReady()
	r.mustPrepare(a)
	for _, c := range []*resourcev1.ResourceClaim{b, whole} {
		if _, err := r.prepare(c); err == nil || !strings.Contains(err.Error(), "held by team-a/claim-a") {
			t.Errorf("%s: got %v", c.UID, err)
		}
	}
	if err := r.unprepare(a); err != nil {
		t.Fatal(err)
	}
	r.mustPrepare(b)
}

func TestADamagedRecordStopsNobody(t *testing.T) {
	n := newNode(t)
	bad, good := shareOf("bad", 40<<30, 0), shareOf("good", 1<<30, 1)
	n.create(bad, good)
	r := n.startReady()
	first := r.mustPrepare(bad)
	r.mustPrepare(good)
	r.stop()
	if err := os.WriteFile(filepath.Join(n.dir, filesOf("bad")[1]), []byte(`{"version": 1, "ph`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // The second restart must still know.
		r = n.startReady()
		intruder := wholeGPU("intruder", 0)
		_ = n.client.Tracker().Add(intruder)
		if _, err := r.prepare(intruder); err == nil || !strings.Contains(err.Error(), "held by team-a/claim-bad") {
			t.Errorf("the GPU of a damaged record was given away: %v", err)
		}
		if _, err := os.Stat(filepath.Join(n.dir, filesOf("bad")[0])); err != nil {
			t.Errorf("its container can no longer restart: %v", err)
		}
		r.mustPrepare(good)
		r.stop()
	}
	r = n.startReady()
	if again := r.mustPrepare(bad); !proto.Equal(first, again) {
		t.Errorf("prepared again, it is answered differently:\n%v\n%v", first, again)
	}
	if err := r.unprepare(bad); err != nil {
		t.Fatal(err)
	}
	if got := n.claimFiles(); !slices.Equal(got, filesOf("good")) {
		t.Errorf("got %v", got)
	}
}

func TestOrphansAreRemovedAtStart(t *testing.T) {
	n := newNode(t)
	share := shareOf("share", 1<<30, 0)
	n.create(share)
	r := n.startReady()
	r.mustPrepare(share)
	r.stop()
	if err := os.Remove(filepath.Join(n.dir, filesOf("share")[1])); err != nil {
		t.Fatal(err)
	}
	n.startReady()
	if got := n.claimFiles(); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestClaimsThatAreGoneAreReleased(t *testing.T) {
	n := newNode(t)
	gone, kept := shareOf("gone", 1<<30, 0), shareOf("kept", 1<<30, 0)
	n.create(gone, kept)
	config := n.config()
	config.CollectGrace = 30 * time.Millisecond
	r := n.start(config)
	n.eventually("prepared", func() bool { _, err := r.prepare(gone); return err == nil })
	r.mustPrepare(kept)
	if err := n.client.ResourceV1().ResourceClaims("team-a").Delete(context.Background(), gone.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	n.eventually("the files are gone", func() bool { return slices.Equal(n.claimFiles(), filesOf("kept")) })
}

func TestFiftyConcurrentPrepares(t *testing.T) {
	n := newNode(t)
	var claims []*resourcev1.ResourceClaim
	for i := range 50 {
		claims = append(claims, shareOf(fmt.Sprintf("c%02d", i), 5e9, i%8))
	}
	n.create(claims...)
	r := n.startReady()
	var wait sync.WaitGroup
	for i, c := range claims {
		wait.Go(func() {
			if _, err := r.prepare(c); err != nil {
				t.Errorf("prepare %d: %v", i, err)
			}
			if _, err := r.prepare(c); err != nil {
				t.Errorf("prepare %d again: %v", i, err)
			}
			if i%2 == 0 {
				if err := r.unprepare(c); err != nil {
					t.Errorf("unprepare %d: %v", i, err)
				}
			}
		})
	}
	wait.Wait()
	if got := len(n.claimFiles()); got != 25*3 {
		t.Errorf("got %d files, want %d", got, 25*3)
	}
}

func TestRegistrationPublishesAgain(t *testing.T) {
	n := newNode(t)
	n.startReady()
	for _, s := range n.slices() {
		if err := n.client.ResourceV1().ResourceSlices().Delete(context.Background(), s.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	n.register()
	n.eventually("slices are back", func() bool { return len(n.slices()) == 3 })
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v: the helper's own repair was faster", took)
	}
}

// One GPU that cannot be read must not hide the other seven, and is published once it answers.
func TestABadGPUDoesNotHideTheOthers(t *testing.T) {
	n := newNode(t)
	n.library.partial.Store(true)
	n.start(n.config())
	n.eventually("seven GPUs are published", func() bool { return n.published() == 2*7 })
	n.library.partial.Store(false)
	n.eventually("all eight are published", func() bool { return n.published() == 2*8 })
}

func BenchmarkPrepareUnprepare(b *testing.B) {
	for _, held := range []int{0, 1000} {
		b.Run(fmt.Sprintf("held=%d", held), func(b *testing.B) {
			n := newNode(b)
			p, err := newPlugin(context.Background(), n.config(), nil)
			if err != nil {
				b.Fatal(err)
			}
			p.setHardware(offered(partition.Build(eightH100(), partition.Default())))
			for i := range held {
				if _, err := p.prepare(shareOf(fmt.Sprintf("held-%d", i), 1<<20, i%8)); err != nil {
					b.Fatal(err)
				}
			}
			c := shareOf("c", 1<<30, 0)
			for b.Loop() {
				if _, err := p.prepare(c); err != nil {
					b.Fatal(err)
				}
				if err := p.unprepare("c"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
