package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

func cohort(name, parent string) snapshot.Queue {
	return snapshot.Queue{Name: name, Parent: parent, Cohort: true, Limit: quantity.Unlimited, SumChildren: true}
}

func leaf(name, parent string) snapshot.Queue {
	return snapshot.Queue{Name: name, Parent: parent, Pool: "p", Deserved: 1000, Limit: quantity.Unlimited}
}

func TestBuild(t *testing.T) {
	other := leaf("b", "org")
	other.Pool = "other"
	negative := leaf("a", "")
	negative.Deserved, negative.Limit, negative.Weight = -1, -1, -1
	for name, tc := range map[string]struct {
		queues   []snapshot.Queue
		want     string // usable queues with depth and deserved
		problems []string
	}{
		"a tree":            {[]snapshot.Queue{leaf("b", "d"), leaf("a", "d"), cohort("d", "org"), cohort("org", "")}, "a@2 1, b@2 1, d@1 2, org@0 2", nil},
		"nothing":           {nil, "", nil},
		"an empty cohort":   {[]snapshot.Queue{cohort("d", "")}, "d@0 0", nil},
		"same names":        {[]snapshot.Queue{cohort("a", ""), leaf("a", "a")}, "a@0 1, a@1 1", nil},
		"a circle":          {[]snapshot.Queue{cohort("x", "y"), cohort("y", "x"), leaf("a", "x"), leaf("b", "")}, "b@0 1", []string{"circle", "circle", "circle"}},
		"its own parent":    {[]snapshot.Queue{cohort("x", "x")}, "", []string{"circle"}},
		"no such parent":    {[]snapshot.Queue{leaf("a", "gone"), leaf("b", "")}, "b@0 1", []string{"parent gone does not exist"}},
		"nor above":         {[]snapshot.Queue{cohort("d", "gone"), leaf("a", "d")}, "", []string{"above it, d has parent gone", "parent gone does not exist"}},
		"a leaf as parent":  {[]snapshot.Queue{leaf("a", ""), leaf("b", "a")}, "a@0 1", []string{"parent a does not exist"}},
		"twice":             {[]snapshot.Queue{leaf("a", ""), leaf("a", "")}, "a@0 1", []string{"two of this name"}},
		"pools do not mix":  {[]snapshot.Queue{cohort("org", ""), leaf("a", "org"), other, leaf("c", "")}, "c@0 1", []string{"several pools", "several pools", "several pools"}},
		"negative numbers":  {[]snapshot.Queue{negative}, "a@0 0", []string{"deserved is negative", "limit is negative", "weight is not within"}},
		"unlimited is kept": {[]snapshot.Queue{{Name: "d", Cohort: true, Deserved: quantity.Unlimited, Limit: quantity.Unlimited, SumChildren: true}, leaf("a", "d")}, "a@1 1, d@0 unlimited", nil},
	} {
		t.Run(name, func(t *testing.T) {
			built, problems := Build(tc.queues)
			var got []string
			for i := range built.Queues {
				got = append(got, fmt.Sprintf("%s@%d %s", built.Queues[i].Spec.Name, built.Queues[i].Depth, built.Queues[i].Deserved))
			}
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("got %s, want %s", strings.Join(got, ", "), tc.want)
			}
			if len(problems) != len(tc.problems) {
				t.Fatalf("problems %v, want %v", problems, tc.problems)
			}
			for i, want := range tc.problems {
				if !strings.Contains(problems[i].What, want) {
					t.Errorf("problem %v, want %q in it", problems[i], want)
				}
			}
		})
	}
}

func TestWhatIsBelowAProblemIsNotUsable(t *testing.T) {
	built, _ := Build([]snapshot.Queue{cohort("d", "gone"), leaf("a", "d"), leaf("b", "")})
	if _, usable := built.Leaf("a"); usable {
		t.Error("a is usable")
	}
	if p, broken := built.Broken("a"); !broken || p.Queue != "a" {
		t.Errorf("a: %v %t", p, broken)
	}
	if _, usable := built.Leaf("b"); !usable {
		t.Error("b is not usable")
	}
	if _, broken := built.Broken("b"); broken {
		t.Error("b is broken")
	}
}

func TestSplit(t *testing.T) {
	built, _ := Build([]snapshot.Queue{cohort("org", ""), cohort("d1", "org"), cohort("d2", "org"), leaf("a", "d1"), leaf("b", "d1"), leaf("c", "d2"), leaf("e", ""), leaf("f", "org")})
	at := func(name string) int {
		return slices.IndexFunc(built.Queues, func(q Queue) bool { return q.Spec.Name == name })
	}
	for pair, want := range map[[2]string][2]string{
		{"a", "b"}: {"a", "b"}, {"a", "c"}: {"d1", "d2"}, {"a", "e"}: {"org", "e"}, {"a", "f"}: {"d1", "f"}, {"c", "a"}: {"d2", "d1"},
	} {
		x, y := built.Split(at(pair[0]), at(pair[1]))
		if got := [2]string{built.Queues[x].Spec.Name, built.Queues[y].Spec.Name}; got != want {
			t.Errorf("%v splits into %v, want %v", pair, got, want)
		}
	}
}

// Whatever the parents are, Build ends, and what it returns is a forest.
func TestRandomParentsGiveAForest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var queues []snapshot.Queue
		names := []string{"", "a", "b", "c", "d", "e", "nowhere"}
		for range rapid.IntRange(0, 10).Draw(t, "queues") {
			q := leaf(rapid.SampledFrom(names[1:6]).Draw(t, "name"), rapid.SampledFrom(names).Draw(t, "parent"))
			q.Cohort = rapid.Bool().Draw(t, "cohort")
			q.Created = int64(rapid.IntRange(0, 2).Draw(t, "created"))
			queues = append(queues, q)
		}
		built, problems := Build(queues)
		seen := 0
		var down func(i, parent, depth int)
		down = func(i, parent, depth int) {
			seen++
			q := &built.Queues[i]
			if q.Parent != parent || q.Depth != depth {
				t.Fatalf("%s: parent %d, depth %d", q.Spec.Name, q.Parent, q.Depth)
			}
			for _, child := range q.Children {
				down(child, i, depth+1)
			}
		}
		for _, root := range built.Roots {
			down(root, -1, 0)
		}
		if seen != len(built.Queues) {
			t.Fatalf("%d of %d queues are below a root", seen, len(built.Queues))
		}
		if len(built.Queues) < len(queues) && len(problems) == 0 {
			t.Fatal("queues were left out without a word")
		}
	})
}
