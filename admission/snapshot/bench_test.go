package snapshot

import (
	"fmt"
	"testing"
)

// fleet is n nodes of 8 free GPUs; fill is done to each GPU.
func fleet(n int, fill func(node, gpu int, g *GPU)) *Room {
	s := &Snapshot{}
	for i := range n {
		g := gpus(8)
		for at := range g {
			fill(i, at, &g[at])
		}
		s.Nodes = append(s.Nodes, Node{Name: fmt.Sprintf("n%05d", i), Schedulable: true, GPUs: g, Free: &Resources{MilliCPU: 1 << 20, Memory: 1 << 40, Pods: 110}})
	}
	return NewRoom(s)
}

// BenchmarkPick places 20,000 pods on 4,000 nodes, or finds that a full fleet
// takes none of 20,000: one operation is all of them.
func BenchmarkPick(b *testing.B) {
	free := fleet(4000, func(int, int, *GPU) {})
	full := fleet(4000, func(_, _ int, g *GPU) { g.WholeUsed = true })
	holes := fleet(4000, func(_, _ int, g *GPU) { g.ShareUsed, g.Shares = 40*gib, 1 })
	needs := Resources{MilliCPU: 100, Memory: 1 << 20, Pods: 1}
	for _, c := range []struct {
		name    string
		room    *Room
		request Request
	}{
		{"free/whole", free, whole(1)},
		{"free/8wholes", free, whole(8)},
		{"free/share", free, share(1, 10)},
		{"free/8shares", free, share(8, 10)},
		{"full/whole", full, whole(1)},
		{"full/share", full, share(1, 10)},
		{"holes/whole", holes, whole(1)},
		{"holes/share", holes, share(1, 10)},
		{"holes/largeshare", holes, share(1, 41)},
	} {
		for _, spread := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/spread=%t", c.name, spread), func(b *testing.B) {
				b.ReportAllocs()
				trial := c.room.Fork()
				set := &PodSet{Requests: []Request{c.request}, Needs: needs}
				for b.Loop() {
					trial.CopyFrom(c.room)
					for range 20_000 {
						trial.Pick(Search{Set: set, Spread: spread})
					}
				}
			})
		}
	}
}

func BenchmarkCopyFrom(b *testing.B) {
	for _, n := range []int{1000, 4000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			r := fleet(n, func(int, int, *GPU) {})
			trial := r.Fork()
			for b.Loop() {
				trial.CopyFrom(r)
			}
		})
	}
}

func BenchmarkCapacity(b *testing.B) {
	r := fleet(1000, func(_, _ int, g *GPU) { g.ShareUsed, g.Shares = 80*gib, 1 })
	some := fleet(1000, func(_, at int, g *GPU) { g.WholeUsed = at < 6 })
	for _, c := range []struct {
		name    string
		room    *Room
		request Request
	}{{"full/8wholes", r, whole(8)}, {"full/share", r, share(1, 10)}, {"some/share", some, share(1, 10)}, {"some/2shares", some, share(2, 10)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			q := Search{Set: &PodSet{Requests: []Request{c.request}}}
			for b.Loop() {
				c.room.CountFit(q, 1<<20)
			}
		})
	}
}
