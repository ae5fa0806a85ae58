package classes

// Reason is a closed list of codes that say why work waits or is refused.
// Codes are API: monitoring and scripts match on them.
type Reason string

// Who names the one who can act on a Reason.
type Who string

// The reasons, each with who can act.
const (
	// ReasonWaitingForCapacity: it fits the pool's hardware, but not now. Wait.
	ReasonWaitingForCapacity Reason = "WaitingForCapacity"
	// ReasonNeverFits: no node of the pool could ever hold it. Change the request.
	ReasonNeverFits Reason = "NeverFits"
	// ReasonPoolEmpty: the pool has no healthy GPU. Administrator.
	ReasonPoolEmpty Reason = "PoolEmpty"
	// ReasonFragmented: the pool has enough free GPUs, but not on as few nodes as asked. Wait.
	ReasonFragmented Reason = "Fragmented"
	// ReasonNodesDoNotFit: GPUs are free, but CPU, memory, taints or node selectors rule their nodes out. User.
	ReasonNodesDoNotFit Reason = "NodesDoNotFit"
	// ReasonOverFairShare: no room, and its queue would exceed its fair share, so others need not give way. Wait.
	ReasonOverFairShare Reason = "OverFairShare"
	// ReasonOverLimit: a queue of its path would exceed its limit. Administrator.
	ReasonOverLimit Reason = "OverLimit"
	// ReasonNonPreemptibleOverDeserved: non-preemptible work only runs inside deserved. User.
	ReasonNonPreemptibleOverDeserved Reason = "NonPreemptibleOverDeserved"
	// ReasonWaitingForRelease: others were told to leave for it. Wait.
	ReasonWaitingForRelease Reason = "WaitingForRelease"
	// ReasonPreemptionDelay: others would give way, but not yet. Wait.
	ReasonPreemptionDelay Reason = "PreemptionDelay"
	// ReasonProtected: who would have to give way has not run its minimum time. Wait.
	ReasonProtected Reason = "Protected"
	// ReasonEvictionBudget: this cycle may evict no more. Wait.
	ReasonEvictionBudget Reason = "EvictionBudget"
	// ReasonBehindHead: a StrictFIFO queue waits for its head. Wait.
	ReasonBehindHead Reason = "BehindHead"
	// ReasonTemplateNotFound: a ResourceClaimTemplate it names does not exist. User.
	ReasonTemplateNotFound Reason = "TemplateNotFound"
	// ReasonClaimNotFound: a ResourceClaim it names does not exist. User.
	ReasonClaimNotFound Reason = "ClaimNotFound"
	// ReasonClassNotFound: a DeviceClass it names does not exist. User.
	ReasonClassNotFound Reason = "ClassNotFound"
	// ReasonQueueNotFound: its LocalQueue or ClusterQueue does not exist. User.
	ReasonQueueNotFound Reason = "QueueNotFound"
	// ReasonQueueMisconfigured: its ClusterQueue does not name exactly one milligpu flavor. Administrator.
	ReasonQueueMisconfigured Reason = "QueueMisconfigured"
	// ReasonUncharged: it holds quota without a charge, because it was queued
	// before the webhook was there. Administrator: deactivate and activate it.
	ReasonUncharged Reason = "Uncharged"
	// ReasonInvalidRequest: the claim asks something that cannot be served. User.
	ReasonInvalidRequest Reason = "InvalidRequest"
	// ReasonUnsupportedRequest: the claim uses a form this version does not serve. User.
	ReasonUnsupportedRequest Reason = "UnsupportedRequest"
)

// Who can act on a reason.
const (
	WhoNobody        Who = "wait"
	WhoUser          Who = "change the request"
	WhoAdministrator Who = "ask the administrator"
	WhoPlatform      Who = "platform fault"
)
