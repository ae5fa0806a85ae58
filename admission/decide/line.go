package decide

import (
	"slices"

	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

// line is everything that waits, in the order of queues: at each level of the
// tree the least served child first, judged with its own first ask. After each
// ask the order is made anew along the path that changed.
//
// It takes over planner.waiting until close.
type line struct {
	p     *planner
	queue heaps
	read  []int               // per queue: asks gone through
	write []int               // per queue: of them kept waiting
	with  []quantity.MilliGPU // per queue: charge of its first ask
}

func (p *planner) newLine() *line {
	n := len(p.tree.Queues)
	l := &line{p: p, read: make([]int, n), write: make([]int, n), with: make([]quantity.MilliGPU, n)}
	var leaves []int
	for leaf, asks := range p.waiting {
		if len(asks) > 0 {
			l.with[leaf] = p.want(asks[0])
			leaves = append(leaves, leaf)
		}
	}
	l.queue = p.newHeaps(l.compare)
	l.queue.reset(leaves)
	return l
}

// compare orders siblings a and b, whose best queues are x and y.
func (l *line) compare(a, b, x, y int) int {
	used := l.p.used
	return l.p.compare(standing{a, used[a], used[a].Add(l.with[x])}, standing{b, used[b], used[b].Add(l.with[y])})
}

// next returns the first ask; it stays first until it is popped.
func (l *line) next() (ask, bool) {
	leaf := l.queue.best()
	if leaf < 0 {
		return ask{}, false
	}
	return l.p.waiting[leaf][l.read[leaf]], true
}

// pop goes past the first ask, which goes on waiting or not.
func (l *line) pop(keep bool) {
	leaf := l.queue.best()
	asks := l.p.waiting[leaf]
	if keep {
		asks[l.write[leaf]] = asks[l.read[leaf]]
		l.write[leaf]++
	}
	l.read[leaf]++
	l.look(leaf)
}

// look takes the next ask of a queue into account.
func (l *line) look(leaf int) {
	if l.read[leaf] == len(l.p.waiting[leaf]) {
		l.queue.remove(leaf)
		return
	}
	if want := l.p.want(l.p.waiting[leaf][l.read[leaf]]); want != l.with[leaf] {
		l.with[leaf] = want
		l.queue.fix(leaf)
	}
}

// skipQueue leaves the rest of the first ask's queue waiting.
func (l *line) skipQueue() { l.queue.remove(l.queue.best()) }

// insert lets a wait among what was not gone through.
func (l *line) insert(a ask) {
	leaf := l.p.jobs[a.job].leaf
	asks, from := l.p.waiting[leaf], l.read[leaf]
	at, _ := slices.BinarySearchFunc(asks[from:], a, l.p.earlier)
	l.p.waiting[leaf] = slices.Insert(asks, from+at, a)
	if !l.queue.has(leaf) {
		l.with[leaf] = l.p.want(a)
		l.queue.add(leaf)
	}
	l.look(leaf)
}

// refresh restores the order after the use of queues changed.
func (l *line) refresh(leaves []int) {
	for _, leaf := range leaves {
		l.queue.fix(leaf)
	}
}

// close gives planner.waiting back: what was kept, what was not reached, and
// what came back meanwhile.
func (l *line) close() {
	p := l.p
	for leaf := range p.waiting {
		if asks := p.waiting[leaf]; l.read[leaf] > l.write[leaf] {
			p.waiting[leaf] = append(asks[:l.write[leaf]], asks[l.read[leaf]:]...)
		}
	}
	for _, a := range p.back {
		leaf := p.jobs[a.job].leaf
		at, _ := slices.BinarySearchFunc(p.waiting[leaf], a, p.earlier)
		p.waiting[leaf] = slices.Insert(p.waiting[leaf], at, a)
	}
	p.back = p.back[:0]
}

// moreImportant reports whether more important work of a's queue was passed by
// in this line and could take over what a would get.
func (l *line) moreImportant(a ask) bool {
	p := l.p
	j := &p.jobs[a.job]
	for _, b := range p.waiting[j.leaf][:l.write[j.leaf]] {
		o := &p.jobs[b.job]
		if o.w.Priority <= j.w.Priority {
			return false
		}
		reason, _ := p.stop(o, p.want(b), p.used, p.solid)
		// What is over a limit now may not be once it preempted in its own queue.
		stopped := reason != "" && (reason != classes.ReasonOverLimit || p.alwaysOverLimit(o, p.want(b)))
		if !stopped && !p.neverFits(o) {
			return true
		}
	}
	return false
}

// alwaysOverLimit reports whether amount is beyond a limit even when nothing else runs.
func (p *planner) alwaysOverLimit(j *job, amount quantity.MilliGPU) bool {
	for q := j.leaf; q >= 0; q = p.tree.Queues[q].Parent {
		if amount > p.tree.Queues[q].Spec.Limit {
			return true
		}
	}
	return false
}
