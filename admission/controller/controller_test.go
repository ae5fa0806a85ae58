package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/classes"
)

func TestATurnStartsAfterTheDebounceOrThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &loop{period: 5 * time.Second, debounce: 75 * time.Millisecond, trigger: make(chan struct{}, 1)}
		start := time.Now()
		if !l.next(t.Context()) || time.Since(start) != 5*time.Second {
			t.Fatalf("without a change a turn starts after the period, not after %s", time.Since(start))
		}
		start = time.Now()
		go func() {
			for range 5 {
				l.changed()
				time.Sleep(10 * time.Millisecond)
			}
		}()
		if !l.next(t.Context()) || time.Since(start) != 75*time.Millisecond {
			t.Fatalf("five changes start one turn after the debounce, not after %s", time.Since(start))
		}
		if len(l.trigger) != 0 {
			t.Fatal("changes seen by this turn start no other")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if l.next(ctx) {
			t.Fatal("no turn after the end")
		}
	})
}

func TestNudgesBackOff(t *testing.T) {
	n, now := nudges{}, time.Unix(0, 0)
	at := map[int]bool{0: true, 1: true, 3: true, 7: true, 15: true, 31: true, 63: true, 123: true, 183: true}
	for second := range 200 {
		if got := n.due("u", now.Add(time.Duration(second)*time.Second)); got != at[second] {
			t.Fatalf("second %d: due %t, want %t", second, got, at[second])
		}
	}
}

func queue(name, cohort, check string, flavors ...string) kueuev1.ClusterQueue {
	q := kueuev1.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	q.Spec.CohortName = kueuev1.CohortReference(cohort)
	q.Spec.AdmissionChecksStrategy = &kueuev1.AdmissionChecksStrategy{
		AdmissionChecks: []kueuev1.AdmissionCheckStrategyRule{{Name: kueuev1.AdmissionCheckReference(check)}},
	}
	group := kueuev1.ResourceGroup{CoveredResources: []corev1.ResourceName{classes.ResourceMilliGPU}}
	for _, flavor := range flavors {
		group.Flavors = append(group.Flavors, kueuev1.FlavorQuotas{
			Name: kueuev1.ResourceFlavorReference(flavor), Resources: []kueuev1.ResourceQuota{{Name: classes.ResourceMilliGPU}},
		})
	}
	q.Spec.ResourceGroups = []kueuev1.ResourceGroup{group}
	return q
}

func cohort(name, parent string, managed bool) kueuev1.Cohort {
	c := kueuev1.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.ParentName = kueuev1.CohortReference(parent)
	if managed {
		c.Labels = map[string]string{classes.LabelManaged: "true"}
	}
	return c
}

func TestManagedRootsGetHeadroomInThePoolsOfTheirTree(t *testing.T) {
	tree := tree{
		ours: func(check kueuev1.AdmissionCheckReference) bool { return check == "ours" },
		cohorts: []kueuev1.Cohort{
			cohort("org", "", true), cohort("research", "org", true), cohort("alone", "", false),
			cohort("empty", "", true), cohort("ring-a", "ring-b", true), cohort("ring-b", "ring-a", true),
		},
		queues: []kueuev1.ClusterQueue{
			queue("b", "research", "ours", "h100"), queue("a", "org", "ours", "a100"), queue("c", "research", "ours", "h100"),
			queue("other", "org", "another", "t4"), queue("d", "alone", "ours", "l40s"), queue("e", "ring-a", "ours", "b200"),
			queue("f", "implicit", "ours", "b200"),
		},
	}
	for i := range tree.cohorts {
		c := &tree.cohorts[i]
		groups, managed := wantedQuota(tree, c)
		if want := c.Name == "org" || c.Name == "empty"; managed != want {
			t.Errorf("%s: ours to write: %t, want %t", c.Name, managed, want)
		}
		if c.Name != "org" {
			if len(groups) > 0 {
				t.Errorf("%s: quota %v", c.Name, groups)
			}
			continue
		}
		if len(groups) != 1 || len(groups[0].Flavors) != 2 || groups[0].Flavors[0].Name != "a100" || groups[0].Flavors[1].Name != "h100" {
			t.Fatalf("org: quota %+v", groups)
		}
		if q := groups[0].Flavors[1].Resources[0].NominalQuota; q.String() != "1G" {
			t.Errorf("org: headroom %s, want 1G", q.String())
		}
	}
}
