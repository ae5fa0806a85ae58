package controller

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/observe"
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
)

// STUB
func translate(v *observe.View) snapshot.Snapshot {
	var s snapshot.Snapshot
	for _, w := range v.Workloads {
		if apimeta.IsStatusConditionTrue(w.Status.Conditions, kueuev1.WorkloadQuotaReserved) && !apimeta.IsStatusConditionTrue(w.Status.Conditions, kueuev1.WorkloadAdmitted) {
			s.Workloads = append(s.Workloads, snapshot.Workload{Namespace: w.Namespace, Name: w.Name, UID: string(w.UID)})
		}
	}
	for _, p := range v.Pods {
		for _, g := range p.Spec.SchedulingGates {
			if g.Name == classes.GatePlacement {
				for _, w := range v.Workloads {
					if w.Namespace == p.Namespace && len(w.OwnerReferences) > 0 && w.OwnerReferences[0].Name == p.Labels["batch.kubernetes.io/job-name"] {
						s.Nodes = append(s.Nodes, snapshot.Node{Name: p.Name, Pool: p.Namespace, Hostname: w.Name})
						s.Queues = append(s.Queues, snapshot.Queue{Name: string(w.UID)})
					}
				}
			}
		}
	}
	return s
}

func cycle(s snapshot.Snapshot, _ decide.Policy, _ time.Time) []decide.Decision {
	var ds []decide.Decision
	for _, w := range s.Workloads {
		ds = append(ds, decide.Decision{Kind: decide.Start, Namespace: w.Namespace, Workload: w.Name, UID: w.UID})
	}
	for i, n := range s.Nodes {
		ds = append(ds, decide.Decision{Kind: decide.Release, Namespace: n.Pool, Pod: n.Name, Workload: n.Hostname, UID: s.Queues[i].Name, Node: n.Pool, Hostname: n.Pool + ".example"})
	}
	return ds
}

func text(d decide.Decision) string { return "stub" }

func unresolvedText(w *kueuev1.Workload) (classes.Reason, string) {
	return classes.ReasonTemplateNotFound, w.Annotations[classes.AnnotationUnresolved]
}
func answerChanged(*observe.View, *kueuev1.Workload) bool { return false }
