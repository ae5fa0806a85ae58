package kueue

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

func cohort(name, parent string, annotations map[string]string) kueuev1.Cohort {
	return kueuev1.Cohort{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations, CreationTimestamp: metav1.NewTime(time.Unix(3, 0))},
		Spec:       kueuev1.CohortSpec{ParentName: kueuev1.CohortReference(parent)},
	}
}

func TestQueuesAndCohortsAreTranslated(t *testing.T) {
	c := small()
	c.ClusterQueues[0].Spec.CohortName = "dept"
	c.ClusterQueues[0].Annotations = map[string]string{
		classes.AnnotationLimit: "12k", classes.AnnotationPriority: "200", classes.AnnotationMinRuntimeReclaim: "10m", classes.AnnotationDeserved: "1k",
	}
	c.ClusterQueues[0].Spec.FairSharing = &kueuev1.FairSharing{Weight: new(resource.MustParse("1500m"))}
	c.ClusterQueues[0].Spec.QueueingStrategy = kueuev1.StrictFIFO
	root := cohort("org", "", nil)
	root.Labels = map[string]string{classes.LabelManaged: "true"}
	root.Spec.ResourceGroups = c.ClusterQueues[0].Spec.ResourceGroups
	c.Cohorts = []kueuev1.Cohort{cohort("dept", "org", map[string]string{classes.AnnotationDeserved: "16k"}), root, cohort("stranger", "", nil)}
	s, problems := c.Snapshot()
	if len(problems) > 0 {
		t.Errorf("problems %v", problems)
	}
	ten := int64(10 * time.Minute)
	want := []snapshot.Queue{
		{Name: "dept", Cohort: true, Parent: "org", Deserved: 16_000, Limit: quantity.Unlimited, Weight: 1000, Priority: 100, Created: 3e9},
		{Name: "org", Cohort: true, Deserved: quantity.Unlimited, Limit: quantity.Unlimited, Weight: 1000, Priority: 100, Created: 3e9},
		{Name: "q", Parent: "dept", Pool: "h100", Deserved: 8000, Limit: 12_000, Weight: 1500, Priority: 200, Strict: true, MinRuntimeReclaim: &ten, Created: s.Queues[2].Created},
	}
	if !reflect.DeepEqual(s.Queues, want) {
		t.Errorf("got  %+v\nwant %+v", s.Queues, want)
	}
}

func TestACohortThatIsANameOnlySumsItsChildren(t *testing.T) {
	c := small()
	c.ClusterQueues[0].Spec.CohortName = "implicit"
	s, _ := c.Snapshot()
	if q := s.Queues[0]; q.Name != "implicit" || !q.Cohort || !q.SumChildren || q.Limit != quantity.Unlimited {
		t.Errorf("got %+v", q)
	}
}

func TestBadAnnotationsAreToldAndIgnored(t *testing.T) {
	c := small()
	c.ClusterQueues[0].Annotations = map[string]string{
		classes.AnnotationLimit: "lots", classes.AnnotationPriority: "high", classes.AnnotationMinRuntimePreempt: "soon",
	}
	s, problems := c.Snapshot()
	if q := s.Queues[0]; q.Limit != quantity.Unlimited || q.Priority != 100 || q.MinRuntimePreempt != nil {
		t.Errorf("got %+v", q)
	}
	if len(problems) != 3 || !strings.Contains(problems[0], "limit") {
		t.Errorf("problems %q", problems)
	}
}

func TestNodesCountWhatAllPodsRequest(t *testing.T) {
	c := small()
	c.Nodes[0].Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110"),
		"example.com/nic": resource.MustParse("2"), "fairshard.dev/gpu": resource.MustParse("8"),
	}
	busy := pod("stranger", func(p *corev1.Pod) {
		p.Labels, p.Annotations, p.Spec.NodeName = nil, nil, "n0"
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("2Gi"), "example.com/nic": resource.MustParse("1"),
		}}}}
	})
	done := busy
	done.Name, done.Status.Phase = "done", corev1.PodSucceeded
	c.Pods = []corev1.Pod{busy, done}
	s, _ := c.Snapshot()
	want := &snapshot.Resources{MilliCPU: 6500, Memory: 30 * quantity.GiB, Pods: 109, Extended: []snapshot.Amount{{Name: "example.com/nic", Value: 1}}}
	if !reflect.DeepEqual(s.Nodes[0].Free, want) {
		t.Errorf("got %+v, want %+v", s.Nodes[0].Free, want)
	}
	if s.Nodes[1].Free != nil {
		t.Errorf("a node that says nothing has no bound, got %+v", s.Nodes[1].Free)
	}
}

func TestSelectorsAffinityAndTaintsBecomeOneConstraint(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Cluster, *corev1.PodSpec)
		want   string
	}{
		"nothing": {func(*Cluster, *corev1.PodSpec) {}, "every node"},
		"a selector": {func(c *Cluster, s *corev1.PodSpec) {
			c.Nodes[1].Labels["disk"] = "fast"
			s.NodeSelector = map[string]string{"disk": "fast"}
		}, "[n1]"},
		"a selector of none": {func(_ *Cluster, s *corev1.PodSpec) { s.NodeSelector = map[string]string{"disk": "fast"} }, "[]"},
		"a taint": {func(c *Cluster, _ *corev1.PodSpec) {
			c.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		}, "[n1]"},
		"a soft taint": {func(c *Cluster, _ *corev1.PodSpec) {
			c.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectPreferNoSchedule}}
		}, "every node"},
		"a tolerated taint": {func(c *Cluster, s *corev1.PodSpec) {
			c.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}}
			s.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
		}, "every node"},
		"a required affinity": {func(_ *Cluster, s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n0"}}}}},
			}}}
		}, "[n0]"},
	} {
		c, w := small(), reserved(t, kueuev1.CheckStatePending)
		tc.change(&c, &w.Spec.PodSets[0].Template.Spec)
		second := w
		second.Name, second.UID = "job2", "job2"
		c.Workloads = []kueuev1.Workload{w, second}
		s, _ := c.Snapshot()
		got := "every node"
		if at := s.Workloads[0].PodSets[0].Constraint; at > 0 {
			got = "[" + strings.Join(s.Constraints[at-1].Nodes, " ") + "]"
		}
		if got != tc.want || len(s.Constraints) > 1 || s.Workloads[1].PodSets[0].Constraint != s.Workloads[0].PodSets[0].Constraint {
			t.Errorf("%s: %s with %d constraints, want %s", name, got, len(s.Constraints), tc.want)
		}
	}
}

func TestPreemptibilityComesFromTheWorkloadPriorityClass(t *testing.T) {
	c, w := small(), reserved(t, kueuev1.CheckStatePending)
	w.Spec.PriorityClassRef = kueuev1.NewWorkloadPriorityClassRef("solid")
	c.Workloads = []kueuev1.Workload{w}
	for label, want := range map[string]bool{"false": true, "true": false, "": false} {
		c.PriorityClasses = []kueuev1.WorkloadPriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "solid", Labels: map[string]string{classes.LabelPreemptible: label}}}}
		if got := snap(c).Workloads[0].NonPreemptible; got != want {
			t.Errorf("label %q: non-preemptible %t, want %t", label, got, want)
		}
	}
}

// Whatever our pods hold is never taken for somebody else's: also when their
// Workload is over, evicted, or has lost its reservation.
func TestPodsThatOutliveTheirWorkloadAreOurs(t *testing.T) {
	held := result("n0", "gpu-0", "")
	held.OwnerReferences = []metav1.OwnerReference{{UID: "p"}}
	for name, tc := range map[string]struct {
		change func(*kueuev1.Workload)
		want   snapshot.WorkloadState
	}{
		"evicted": {func(w *kueuev1.Workload) {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kueuev1.WorkloadEvicted, Status: metav1.ConditionTrue})
		}, snapshot.Returning},
		"unreserved": {func(w *kueuev1.Workload) {
			w.Status.Admission, w.Status.Conditions = nil, nil
			w.Spec.QueueName = "door"
		}, snapshot.Ended},
		"evicted and unreserved": {func(w *kueuev1.Workload) {
			w.Status.Admission, w.Status.AdmissionChecks = nil, nil
			w.Status.Conditions = []metav1.Condition{{Type: kueuev1.WorkloadEvicted, Status: metav1.ConditionTrue}}
		}, snapshot.Returning},
		"finished": {func(w *kueuev1.Workload) {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kueuev1.WorkloadFinished, Status: metav1.ConditionTrue})
		}, snapshot.Ended},
		"inactive": {func(w *kueuev1.Workload) { w.Spec.Active = new(false) }, snapshot.Ended},
		"deleted":  {func(w *kueuev1.Workload) { w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, snapshot.Ended},
		"requeued": {func(w *kueuev1.Workload) { w.Status.AdmissionChecks[1].State = kueuev1.CheckStatePending }, snapshot.Waiting},
	} {
		c, w := small(), reserved(t, kueuev1.CheckStateReady)
		tc.change(&w)
		c.Workloads, c.Claims = []kueuev1.Workload{w}, []resourcev1.ResourceClaim{held}
		c.Pods = []corev1.Pod{pod("p", func(p *corev1.Pod) { p.Spec.NodeName, p.DeletionTimestamp = "n0", &metav1.Time{Time: time.Unix(1, 0)} })}
		s, _ := c.Snapshot()
		if len(s.Workloads) != 1 || s.Workloads[0].State != tc.want {
			t.Errorf("%s: got %+v", name, s.Workloads)
			continue
		}
		got := s.Workloads[0].PodSets[0].Pods[0]
		if !got.Leaving || len(got.Devices) != 1 || got.Devices[0].Kind != snapshot.Whole {
			t.Errorf("%s: pod %+v", name, got)
		}
	}
}

func TestAPromiseIsReadStrictly(t *testing.T) {
	good, err := EncodePromise(&snapshot.Promise{Nodes: [][]string{{"n0", "n1"}}, Since: 5, Turn: 2})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]*snapshot.Promise{
		good:                            {Nodes: [][]string{{"n0", "n1"}}, Since: 5, Turn: 2},
		"":                              nil,
		"{}":                            nil,
		`{"version":9,"nodes":[["n"]]}`: nil,
		`{"version":1,"nodes":[]}`:      nil,
		`{"version":1,"nodes":[["n"]],"since":1,"turn":1,"more":1}`: nil,
	} {
		c, w := small(), reserved(t, kueuev1.CheckStatePending)
		w.Annotations[classes.AnnotationPromise] = text
		c.Workloads = []kueuev1.Workload{w}
		if got := snap(c).Workloads[0].Promise; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
}
