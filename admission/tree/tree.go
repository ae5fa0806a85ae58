package tree

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// Tree is all usable queues: Cohorts and ClusterQueues whose parents lead to a root.
type Tree struct {
	Queues []Queue // by name, the Cohort before the ClusterQueue of the same name
	Roots  []int   // older first, then by name
	leaves map[string]int
	broken map[string]Problem
}

// Queue is one queue with its place. Numbers in Spec are within bounds.
type Queue struct {
	Spec     snapshot.Queue
	Parent   int   // -1 = a root
	Children []int // older first, then by name
	Depth    int   // 0 = a root
	Pool     string
	// Deserved is what the queue is promised, with what its children deserve
	// where the queue says so.
	Deserved quantity.MilliGPU
}

// Problem says what is wrong with a queue.
type Problem struct {
	Queue  string
	Cohort bool
	What   string
}

// MaxWeight is the largest weight that counts, in thousandths.
const MaxWeight = 1_000_000_000

// Build makes the tree of queues, whose order does not matter. A queue that
// cannot be placed, and everything below it, is left out.
func Build(queues []snapshot.Queue) (*Tree, []Problem) {
	b := builder{specs: slices.Clone(queues), cohorts: map[string]int{}, taken: map[string]bool{}}
	slices.SortStableFunc(b.specs, func(x, y snapshot.Queue) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), cmp.Compare(kind(x), kind(y)), cmp.Compare(x.Created, y.Created))
	})
	b.dropDuplicates()
	for i := range b.specs {
		b.clamp(i)
		if b.specs[i].Cohort {
			b.cohorts[b.specs[i].Name] = i
		}
	}
	b.bad = make([]string, len(b.specs))
	for i := range b.specs {
		b.bad[i] = b.check(i)
	}
	b.checkPools()
	return b.tree(), b.problems
}

func kind(q snapshot.Queue) int {
	if q.Cohort {
		return 0
	}
	return 1
}

// Leaf returns the position of a usable ClusterQueue.
func (t *Tree) Leaf(name string) (int, bool) {
	i, usable := t.leaves[name]
	return i, usable
}

// Broken says why a ClusterQueue is not usable.
func (t *Tree) Broken(name string) (Problem, bool) {
	p, broken := t.broken[name]
	return p, broken
}

// Split returns the first ancestors, seen from the root, in which two different
// queues differ; a queue is its own ancestor.
func (t *Tree) Split(a, b int) (x, y int) {
	for t.Queues[a].Depth > t.Queues[b].Depth {
		a = t.Queues[a].Parent
	}
	for t.Queues[b].Depth > t.Queues[a].Depth {
		b = t.Queues[b].Parent
	}
	for t.Queues[a].Parent != t.Queues[b].Parent {
		a, b = t.Queues[a].Parent, t.Queues[b].Parent
	}
	return a, b
}

// Pools returns the pools of all queues, sorted.
func (t *Tree) Pools() []string {
	var pools []string
	for i := range t.Queues {
		if t.Queues[i].Pool != "" {
			pools = append(pools, t.Queues[i].Pool)
		}
	}
	slices.Sort(pools)
	return slices.Compact(pools)
}

// builder is the state of one Build.
type builder struct {
	specs    []snapshot.Queue
	cohorts  map[string]int
	taken    map[string]bool
	bad      []string // per queue: why it cannot be used, "" = it can
	problems []Problem
}

func (b *builder) problem(i int, what string) {
	b.problems = append(b.problems, Problem{Queue: b.specs[i].Name, Cohort: b.specs[i].Cohort, What: what})
}

// dropDuplicates keeps the oldest of the queues of one kind and name.
func (b *builder) dropDuplicates() {
	kept := b.specs[:0]
	for i, q := range b.specs {
		if i > 0 && len(kept) > 0 && kept[len(kept)-1].Name == q.Name && kept[len(kept)-1].Cohort == q.Cohort {
			b.problems = append(b.problems, Problem{Queue: q.Name, Cohort: q.Cohort, What: "there are two of this name; the older one counts"})
			continue
		}
		kept = append(kept, q)
	}
	b.specs = kept
}

// clamp brings numbers within bounds.
func (b *builder) clamp(i int) {
	q := &b.specs[i]
	if q.Deserved < 0 {
		b.problem(i, "deserved is negative; it counts as 0")
		q.Deserved = 0
	}
	if q.Limit < 0 {
		b.problem(i, "limit is negative; it counts as 0")
		q.Limit = 0
	}
	if q.Weight < 0 || q.Weight > MaxWeight {
		b.problem(i, "weight is not within 0 and 1 million; the nearer bound counts")
		q.Weight = min(max(q.Weight, 0), MaxWeight)
	}
	if q.Demand != nil && *q.Demand < 0 {
		b.problem(i, "demand is negative; it counts as 0")
		none := quantity.MilliGPU(0)
		q.Demand = &none
	}
}

// check follows the parents of a queue to its root.
func (b *builder) check(i int) string {
	at := i
	for range len(b.specs) + 1 {
		name := b.specs[at].Parent
		if name == "" {
			return ""
		}
		parent, known := b.cohorts[name]
		if !known {
			what := "parent " + name + " does not exist"
			if at != i {
				what = "above it, " + b.specs[at].Name + " has parent " + name + ", which does not exist"
			}
			b.problem(i, what)
			return what
		}
		at = parent
	}
	what := "its parents go round in a circle"
	b.problem(i, what)
	return what
}

// checkPools makes trees unusable whose leaves are of different pools: each pool
// needs a tree of its own.
func (b *builder) checkPools() {
	pools := map[int]string{}
	mixed := map[int]bool{}
	for i, q := range b.specs {
		if b.bad[i] != "" || q.Cohort {
			continue
		}
		root := b.root(i)
		if known, seen := pools[root]; seen && known != q.Pool {
			mixed[root] = true
		}
		pools[root] = q.Pool
	}
	for i := range b.specs {
		if b.bad[i] == "" && mixed[b.root(i)] {
			b.bad[i] = "the tree below " + b.specs[b.root(i)].Name + " has queues of several pools; each pool needs a tree of its own"
			b.problem(i, b.bad[i])
		}
	}
}

func (b *builder) root(i int) int {
	for b.specs[i].Parent != "" {
		i = b.cohorts[b.specs[i].Parent]
	}
	return i
}

func (b *builder) tree() *Tree {
	t := &Tree{leaves: map[string]int{}, broken: map[string]Problem{}}
	at := make([]int, len(b.specs))
	for i, q := range b.specs {
		if b.bad[i] != "" {
			if !q.Cohort {
				t.broken[q.Name] = Problem{Queue: q.Name, What: b.bad[i]}
			}
			continue
		}
		at[i] = len(t.Queues)
		t.Queues = append(t.Queues, Queue{Spec: q, Parent: -1, Pool: q.Pool, Deserved: q.Deserved})
		if !q.Cohort {
			t.leaves[q.Name] = at[i]
		}
	}
	for i := range t.Queues {
		if parent := t.Queues[i].Spec.Parent; parent != "" {
			t.Queues[i].Parent = at[b.cohorts[parent]]
			t.Queues[t.Queues[i].Parent].Children = append(t.Queues[t.Queues[i].Parent].Children, i)
			continue
		}
		t.Roots = append(t.Roots, i)
	}
	t.order(t.Roots)
	for _, root := range t.Roots {
		t.finish(root, 0)
	}
	return t
}

func (t *Tree) order(list []int) {
	slices.SortFunc(list, func(a, b int) int {
		return cmp.Or(cmp.Compare(t.Queues[a].Spec.Created, t.Queues[b].Spec.Created), cmp.Compare(a, b))
	})
}

// finish fills in what depends on parents and children.
func (t *Tree) finish(i, depth int) {
	q := &t.Queues[i]
	q.Depth = depth
	t.order(q.Children)
	for _, child := range q.Children {
		t.finish(child, depth+1)
		if q.Spec.SumChildren {
			q.Deserved = q.Deserved.Add(t.Queues[child].Deserved)
		}
		if t.Queues[child].Pool != "" {
			q.Pool = t.Queues[child].Pool
		}
	}
}
