package explain

import (
	"fmt"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/classes"
)

// who says for every reason who can act. It holds all codes of classes.
var who = map[classes.Reason]classes.Who{
	classes.ReasonWaitingForCapacity: classes.WhoNobody,
	classes.ReasonBehindHead:         classes.WhoNobody,
	classes.ReasonNeverFits:          classes.WhoUser,
	classes.ReasonTemplateNotFound:   classes.WhoUser,
	classes.ReasonClaimNotFound:      classes.WhoUser,
	classes.ReasonClassNotFound:      classes.WhoUser,
	classes.ReasonQueueNotFound:      classes.WhoUser,
	classes.ReasonInvalidRequest:     classes.WhoUser,
	classes.ReasonUnsupportedRequest: classes.WhoUser,
	classes.ReasonPoolEmpty:          classes.WhoAdministrator,
	classes.ReasonQueueMisconfigured: classes.WhoAdministrator,
	classes.ReasonUncharged:          classes.WhoAdministrator,
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
	}
	return ""
}

func hold(d decide.Decision) string {
	n := d.Numbers
	switch d.Reason {
	case classes.ReasonWaitingForCapacity:
		return fmt.Sprintf("Waiting for free GPUs: %s %s; %d of %d GPUs of pool %s could take %s now%s. It starts by itself when there is room.",
			subject(d), wants(n), n.FreeGPUs, n.TotalGPUs, n.Pool, one(n), gang(n))
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
	default:
		return string(d.Reason) + "."
	}
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
	case n.WantGPUs == 1:
		return bytes(n) + " of one GPU"
	default:
		return fmt.Sprintf("%s on each of %d GPUs of one node", bytes(n), n.WantGPUs)
	}
}

func one(n decide.Numbers) string {
	if n.Whole {
		return "a whole-GPU request"
	}
	return "such a share"
}

func bytes(n decide.Numbers) string {
	if n.WantBytes == 0 {
		return "all memory"
	}
	return n.WantBytes.String()
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
	case !n.Whole && n.WantBytes > n.LargestBytes:
		return fmt.Sprintf("the largest GPU of pool %s offers %s", n.Pool, n.LargestBytes)
	case n.MostOnNode < n.WantGPUs:
		return fmt.Sprintf("no node of pool %s has more than %d such GPUs", n.Pool, n.MostOnNode)
	default:
		return fmt.Sprintf("pool %s has %d GPUs, too few for all of them even when nobody else uses it", n.Pool, n.TotalGPUs)
	}
}
