package snapshot

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestSortBringsListsIntoOneOrder(t *testing.T) {
	s := Snapshot{
		Nodes:  []Node{{Name: "b", GPUs: []GPU{{UUID: "2"}, {UUID: "1"}}}, {Name: "a"}},
		Queues: []Queue{{Name: "b"}, {Name: "a"}, {Name: "a", Cohort: true}},
		Workloads: []Workload{
			{Namespace: "b", Name: "a"},
			{Namespace: "a", Name: "b", PodSets: []PodSet{{Pods: []Pod{{Name: "p-10"}, {Name: "p-2"}, {Name: "p-1"}}}}},
			{Namespace: "a", Name: "a"},
		},
	}
	s.Sort()
	pods := s.Workloads[1].PodSets[0].Pods
	switch {
	case s.Nodes[0].Name != "a", s.Nodes[1].GPUs[0].UUID != "2":
		t.Errorf("want nodes by name and GPUs as published, got %+v", s.Nodes)
	case s.Queues[0].Name != "a", !s.Queues[0].Cohort, s.Queues[1].Cohort, s.Queues[2].Name != "b":
		t.Errorf("want queues by name, Cohorts first, got %+v", s.Queues)
	case s.Workloads[0].Key() != "a/a", s.Workloads[2].Key() != "b/a":
		t.Errorf("got workloads %+v", s.Workloads)
	case pods[0].Name != "p-1", pods[1].Name != "p-2", pods[2].Name != "p-10":
		t.Errorf("got pods %+v", pods)
	}
}

func TestTheOrderOfArrivalIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "a-10", "a-2", "c"}
		shuffled := func(label string) Snapshot {
			var s Snapshot
			for i, name := range rapid.Permutation(names).Draw(t, label) {
				s.Nodes = append(s.Nodes, Node{Name: name})
				s.Queues = append(s.Queues, Queue{Name: name, Cohort: true}, Queue{Name: name})
				s.Usage = append(s.Usage, Sample{Queue: name, To: 1}, Sample{Queue: name, To: 2})
				if i%2 == 1 {
					last := len(s.Queues)
					s.Queues[last-1], s.Queues[last-2] = s.Queues[last-2], s.Queues[last-1]
				}
				s.Workloads = append(s.Workloads, Workload{Namespace: "n", Name: name})
			}
			pods := &PodSet{}
			for _, name := range rapid.Permutation(names).Draw(t, label+" pods") {
				pods.Pods = append(pods.Pods, Pod{Name: name})
			}
			s.Workloads = append(s.Workloads, Workload{Namespace: "m", PodSets: []PodSet{*pods}})
			s.Sort()
			return s
		}
		if one, other := shuffled("one"), shuffled("other"); !reflect.DeepEqual(one, other) {
			t.Fatalf("%+v\nand\n%+v", one, other)
		}
	})
}
