package observe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/classes"
)

func TestAViewFindsObjectsAndKnowsOurChecks(t *testing.T) {
	var l lists
	l.workloads.Items = []kueuev1.Workload{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w"}}}
	l.pods.Items = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", Labels: map[string]string{classes.LabelPlacement: "true"}}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "stranger"}}}
	l.checks.Items = []kueuev1.AdmissionCheck{
		{ObjectMeta: metav1.ObjectMeta{Name: "ours"}, Spec: kueuev1.AdmissionCheckSpec{ControllerName: classes.AdmissionControllerName}},
		{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: kueuev1.AdmissionCheckSpec{ControllerName: "example.com/other"}},
	}
	v := l.view()
	if v.Workload("a", "w") != &v.Workloads[0] || v.Workload("b", "w") != nil || v.Pod("a", "p") != &v.Pods[0] || v.Pod("a", "stranger") != nil {
		t.Fatal("objects are found by namespace and name")
	}
	if !v.Ours("ours") || v.Ours("other") || len(v.Checks) != 1 {
		t.Fatal("only checks with our controller name are ours")
	}
	if len(l.all()) != len(watched()) {
		t.Fatal("everything that is read is watched")
	}
}

func TestHeartbeatsOfNodesStartNoCycle(t *testing.T) {
	node := func(version string, change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if change != nil {
			change(n)
		}
		return n
	}
	for name, tc := range map[string]struct {
		after any
		want  bool
	}{
		"resync":    {node("1", nil), false},
		"heartbeat": {node("2", func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Time{Time: time.Unix(9, 0)} }), false},
		"not ready": {node("2", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }), true},
		"cordoned":  {node("2", func(n *corev1.Node) { n.Spec.Unschedulable = true }), true},
		"labelled":  {node("2", func(n *corev1.Node) { n.Labels = map[string]string{"pool": "a"} }), true},
		"tainted":   {node("2", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} }), true},
	} {
		if got := relevant(node("1", nil), tc.after); got != tc.want {
			t.Errorf("%s: starts a cycle: %t, want %t", name, got, tc.want)
		}
	}
}

func TestOnlyWhatACycleLooksAtOfPodsStartsOne(t *testing.T) {
	pod := func(version string, ours bool, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
		if ours {
			p.Labels = map[string]string{classes.LabelPlacement: "true"}
		}
		if change != nil {
			change(p)
		}
		return p
	}
	for name, tc := range map[string]struct {
		ours   bool
		change func(*corev1.Pod)
		want   bool
	}{
		"anything of ours":     {true, nil, true},
		"a stranger's status":  {false, nil, false},
		"a stranger is bound":  {false, func(p *corev1.Pod) { p.Spec.NodeName = "n" }, true},
		"a stranger has ended": {false, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true},
	} {
		if got := relevant(pod("1", tc.ours, nil), pod("2", tc.ours, tc.change)); got != tc.want {
			t.Errorf("%s: starts a cycle: %t, want %t", name, got, tc.want)
		}
	}
	if !relevant(&kueuev1.Workload{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}, &kueuev1.Workload{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}}) {
		t.Error("a change of anything else starts a cycle")
	}
}

func TestAPodIsKeptWithoutWhatNobodyReads(t *testing.T) {
	full := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
	full.Spec.NodeName = "n"
	full.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "E"}}}}
	full.Spec.Volumes = []corev1.Volume{{Name: "v"}}
	full.Status.Phase = corev1.PodRunning
	kept, err := slim(full)
	if err != nil {
		t.Fatal(err)
	}
	got := kept.(*corev1.Pod)
	if got.Name != "p" || got.Spec.NodeName != "n" || got.Status.Phase != corev1.PodRunning || got.Spec.Containers[0].Name != "c" {
		t.Errorf("too little is kept: %+v", got)
	}
	if got.Spec.Containers[0].Image != "" || len(got.Spec.Volumes)+len(got.ManagedFields) > 0 {
		t.Errorf("too much is kept: %+v", got)
	}
	if full.Spec.Containers[0].Image != "i" || len(full.ManagedFields) != 1 {
		t.Error("the informer's object was changed")
	}
}
