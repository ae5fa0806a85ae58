package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/classes"
)

// who says for every reason who can act. It holds all codes of classes.
var who = map[classes.Reason]classes.Who{
	classes.ReasonWaitingForCapacity:         classes.WhoNobody,
	classes.ReasonFragmented:                 classes.WhoNobody,
	classes.ReasonOverFairShare:              classes.WhoNobody,
	classes.ReasonWaitingForRelease:          classes.WhoNobody,
	classes.ReasonPreemptionDelay:            classes.WhoNobody,
	classes.ReasonProtected:                  classes.WhoNobody,
	classes.ReasonEvictionBudget:             classes.WhoNobody,
	classes.ReasonBehindHead:                 classes.WhoNobody,
	classes.ReasonNeverFits:                  classes.WhoUser,
	classes.ReasonNodesDoNotFit:              classes.WhoUser,
	classes.ReasonNonPreemptibleOverDeserved: classes.WhoUser,
	classes.ReasonOverLimit:                  classes.WhoAdministrator,
	classes.ReasonTemplateNotFound:           classes.WhoUser,
	classes.ReasonClaimNotFound:              classes.WhoUser,
	classes.ReasonClassNotFound:              classes.WhoUser,
	classes.ReasonQueueNotFound:              classes.WhoUser,
	classes.ReasonInvalidRequest:             classes.WhoUser,
	classes.ReasonUnsupportedRequest:         classes.WhoUser,
	classes.ReasonPoolEmpty:                  classes.WhoAdministrator,
	classes.ReasonQueueMisconfigured:         classes.WhoAdministrator,
	classes.ReasonUncharged:                  classes.WhoAdministrator,
}

// Who returns who can act on a reason; a platform fault for a code that is not in the list.
func Who(reason classes.Reason) classes.Who {
	if w, known := who[reason]; known {
		return w
	}
	return classes.WhoPlatform
}

// Started is the text of a check that is Ready.
const Started = "The planner started this workload: its pods get a node each and start."

// Text returns the sentence for a decision.
func Text(d decide.Decision) string {
	switch d.Kind {
	case decide.Start:
		return Started
	case decide.Release:
		if d.Node == "" {
			return fmt.Sprintf("Pod %s is released: it asks for no device of ours.", d.Pod)
		}
		return fmt.Sprintf("Pod %s is released to node %s.", d.Pod, d.Node)
	case decide.Hold:
		return hold(d)
	case decide.Evict:
		return evict(d)
	}
	return ""
}

func hold(d decide.Decision) string {
	n := d.Numbers
	if why, found := waits[d.Reason]; found {
		return why(d)
	}
	switch d.Reason {
	case classes.ReasonNeverFits:
		return fmt.Sprintf("Cannot start: %s %s; %s. Change the request.", subject(d), wants(n), never(n))
	case classes.ReasonPoolEmpty:
		return fmt.Sprintf("Waiting for GPUs: pool %s of queue %s has no healthy GPU on a schedulable node. Ask the administrator.", n.Pool, n.Queue)
	case classes.ReasonBehindHead:
		return fmt.Sprintf("Waiting behind %s: queue %s starts its work strictly in order.", n.Ahead, n.Queue)
	case classes.ReasonUncharged:
		return fmt.Sprintf("Cannot start: it was queued in %s before its GPUs could be charged. Set spec.active of this Workload to false and then to true, or create the job again.", n.Queue)
	case classes.ReasonQueueNotFound:
		return fmt.Sprintf("Cannot start: queue %s does not exist.", n.Queue)
	case classes.ReasonQueueMisconfigured:
		return fmt.Sprintf("Cannot start: queue %s cannot be used: %s. Ask the administrator.", n.Queue, n.Ahead)
	default:
		return string(d.Reason) + "."
	}
}

// waits are the texts of work that could start at another time.
var waits = map[classes.Reason]func(decide.Decision) string{
	classes.ReasonWaitingForCapacity: func(d decide.Decision) string {
		return fmt.Sprintf("Waiting for free GPUs: %s. It starts by itself when there is room.", room(d))
	},
	classes.ReasonFragmented: func(d decide.Decision) string {
		return fmt.Sprintf("Waiting for free GPUs side by side: %s; enough are free in all, but not where they are needed. It starts by itself when there is room.", room(d))
	},
	classes.ReasonOverFairShare: func(d decide.Decision) string {
		return fmt.Sprintf("Waiting for free GPUs: %s; queue %s uses %s of its fair share of %s GPUs, so nobody has to give way for %s more. It starts by itself when there is room.",
			room(d), d.Numbers.At, d.Numbers.Used, d.Numbers.Share, d.Numbers.Want)
	},
	classes.ReasonPreemptionDelay: func(d decide.Decision) string {
		return fmt.Sprintf("Waiting for free GPUs: %s; others give way for it in %s at the earliest.", room(d), seconds(d.Numbers.Wait))
	},
	classes.ReasonProtected: func(d decide.Decision) string {
		return fmt.Sprintf("Waiting for free GPUs: %s; who would have to give way has not run its minimum time yet, for %s more.", room(d), seconds(d.Numbers.Wait))
	},
	classes.ReasonEvictionBudget: func(d decide.Decision) string {
		return fmt.Sprintf("Waiting for free GPUs: %s; others have to give way, but no more in this cycle.", room(d))
	},
	classes.ReasonNodesDoNotFit: func(d decide.Decision) string {
		return fmt.Sprintf("Waiting for nodes: %s; GPUs for %d such pods are free, but CPU, memory, taints or node selectors rule their nodes out. Change what the pod asks for beside GPUs.",
			room(d), d.Numbers.FitNodes)
	},
	classes.ReasonOverLimit: func(d decide.Decision) string {
		n := d.Numbers
		return fmt.Sprintf("Waiting for quota: queue %s uses %s of its limit of %s GPUs, and this asks for %s. It starts when the queue uses less; for a higher limit ask the administrator.",
			n.At, n.Used, n.Limit, n.Want)
	},
	classes.ReasonNonPreemptibleOverDeserved: func(d decide.Decision) string {
		n := d.Numbers
		return fmt.Sprintf("Waiting for quota: queue %s deserves %s GPUs, its non-preemptible work uses %s, and this asks for %s. Non-preemptible work runs only inside what a queue deserves: wait, or make it preemptible.",
			n.At, n.Deserved, n.Used, n.Want)
	},
	classes.ReasonWaitingForRelease: func(d decide.Decision) string {
		if len(d.Victims) == 0 {
			return "Starts soon: its GPUs are still held by pods that are ending."
		}
		return fmt.Sprintf("Starts soon: %s for it.", leave(d.Victims))
	},
}

// room says what is asked for and what there is.
func room(d decide.Decision) string {
	n := d.Numbers
	return fmt.Sprintf("%s %s; %d of %d GPUs of pool %s could take %s now%s", subject(d), wants(n), n.FreeGPUs, n.TotalGPUs, n.Pool, one(n), gang(n))
}

// leave names who gives way: the first three, and how many more.
func leave(victims []decide.Ref) string {
	const most = 3
	var names []string
	for _, v := range victims[:min(len(victims), most)] {
		names = append(names, v.Key())
	}
	text := strings.Join(names, ", ")
	if more := len(victims) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(victims) == 1 {
		return text + " gives way"
	}
	return text + " give way"
}

// seconds is a time span without parts of a second.
func seconds(d time.Duration) string { return d.Round(time.Second).String() }

// evict says who gets the room, by which rule, and the numbers.
func evict(d decide.Decision) string {
	n := d.Numbers
	what := "Evicted"
	if len(d.Pods) > 0 {
		what = fmt.Sprintf("Surplus pods taken back (%s)", strings.Join(d.Pods, ", "))
	}
	switch d.Rule {
	case decide.RuleReclaimFairShare:
		return fmt.Sprintf("%s for %s of queue %s: queue %s uses %s GPUs and its fair share is %s; queue %s uses %s of its fair share of %s and asks for %s. It is queued again.",
			what, d.For.Key(), d.For.Queue, n.At, n.Used, n.Share, n.OtherAt, n.OtherUsed, n.OtherShare, n.Want)
	case decide.RuleReclaimDeserved:
		return fmt.Sprintf("%s for %s of queue %s: queue %s uses %s GPUs and deserves %s; queue %s uses %s of the %s it deserves and asks for %s. It is queued again.",
			what, d.For.Key(), d.For.Queue, n.At, n.Used, n.Deserved, n.OtherAt, n.OtherUsed, n.OtherDeserved, n.Want)
	case decide.RulePreempt:
		return fmt.Sprintf("%s for %s, which is more important in the same queue %s: priority %d against %d; it asks for %s GPUs. It is queued again.",
			what, d.For.Key(), d.For.Queue, n.OtherPriority, n.Priority, n.Want)
	case decide.RuleConsolidate:
		return fmt.Sprintf("Moved for %s of queue %s, which asks for %s GPUs: it fits elsewhere and starts there again.", d.For.Key(), d.For.Queue, n.Want)
	case decide.RuleStaleGang:
		return fmt.Sprintf("Evicted because only %d of its %d pods have GPUs, for longer than %s. It is queued again.", n.PlacedPods, n.Pods, seconds(n.Wait))
	}
	return string(d.Rule) + "."
}

// Unresolved is the text for a workload whose demand is not known yet; detail
// comes from the translation and names the object that is missing or wrong.
func Unresolved(reason classes.Reason, detail string) string {
	switch Who(reason) {
	case classes.WhoAdministrator:
		return fmt.Sprintf("Cannot be queued yet: %s. Ask the administrator.", detail)
	case classes.WhoUser:
		if missing(reason) {
			return fmt.Sprintf("Cannot be queued yet: %s. It goes on by itself once that exists.", detail)
		}
		return fmt.Sprintf("Cannot be queued: %s. Change the request.", detail)
	default:
		return fmt.Sprintf("Cannot be queued yet: %s.", detail)
	}
}

// missing reports whether creating an object cures the reason.
func missing(reason classes.Reason) bool {
	switch reason {
	case classes.ReasonTemplateNotFound, classes.ReasonClaimNotFound, classes.ReasonClassNotFound, classes.ReasonQueueNotFound:
		return true
	default:
		return false
	}
}

func subject(d decide.Decision) string {
	switch {
	case d.Pod != "":
		return "pod " + d.Pod + " asks for"
	case d.Numbers.Pods > 1:
		return fmt.Sprintf("%d pods start together and each asks for", d.Numbers.Pods)
	default:
		return "its pod asks for"
	}
}

func wants(n decide.Numbers) string {
	switch {
	case n.Whole && n.WantGPUs == 1:
		return "1 whole GPU"
	case n.Whole:
		return fmt.Sprintf("%d whole GPUs of one node", n.WantGPUs)
	case n.Profile != "" && n.WantGPUs == 1:
		return "a MIG device " + n.Profile
	case n.Profile != "":
		return fmt.Sprintf("MIG devices %s of %d GPUs of one node", n.Profile, n.WantGPUs)
	case n.WantGPUs == 1:
		return bytes(n) + " of one GPU"
	default:
		return fmt.Sprintf("%s on each of %d GPUs of one node", bytes(n), n.WantGPUs)
	}
}

func one(n decide.Numbers) string {
	switch {
	case n.Whole:
		return "a whole-GPU request"
	case n.Profile != "":
		return "such a device"
	default:
		return "such a share"
	}
}

func bytes(n decide.Numbers) string {
	switch {
	case n.WantPPM > 0:
		return fmt.Sprintf("%s of the memory", percent(n.WantPPM))
	case n.WantBytes == 0:
		return "all memory"
	default:
		return n.WantBytes.String()
	}
}

// percent prints millionths: 500000 is "50%", 333333 is "33.3333%".
func percent(ppm int64) string {
	text := fmt.Sprintf("%d.%04d", ppm/10_000, ppm%10_000)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "%"
}

func gang(n decide.Numbers) string {
	if n.Pods <= 1 {
		return ""
	}
	return fmt.Sprintf(", room for %d of %d pods", n.PlacedPods, n.Pods)
}

// never says which count makes it impossible.
func never(n decide.Numbers) string {
	switch {
	case !n.Whole && n.Profile == "" && n.WantBytes > n.LargestBytes:
		return fmt.Sprintf("the largest GPU of pool %s offers %s", n.Pool, n.LargestBytes)
	case n.MostOnNode < n.WantGPUs:
		return fmt.Sprintf("no node of pool %s has more than %d such GPUs", n.Pool, n.MostOnNode)
	case n.Pods > 1 && n.GangFits < n.Pods:
		return fmt.Sprintf("the nodes of pool %s have room for %d such pods, not %d, even when nobody else uses them", n.Pool, n.GangFits, n.Pods)
	default:
		return fmt.Sprintf("pool %s has %d GPUs, too few for all of them even when nobody else uses it", n.Pool, n.TotalGPUs)
	}
}
