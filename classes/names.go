package classes

// Names that appear in objects users and administrators write or read.
const (
	// Domain prefixes every label, annotation and resource of the project.
	Domain = "fairshard.dev"
	// DriverName is the DRA driver; it is also the domain of device attributes.
	DriverName = "gpu.fairshard.dev"
	// DeviceClassGPU selects whole GPUs.
	DeviceClassGPU = "gpu.fairshard.dev"
	// DeviceClassShare selects shares of a GPU, measured in bytes of its memory.
	DeviceClassShare = "gpu-share.fairshard.dev"
	// ExtendedResourceGPU is the extended resource that DeviceClassGPU serves.
	ExtendedResourceGPU = "fairshard.dev/gpu"
	// ResourceMilliGPU is the one currency of quota: a whole GPU is 1000.
	ResourceMilliGPU = "fairshard.dev/milligpu"
	// AdmissionControllerName is the controllerName of our AdmissionChecks.
	AdmissionControllerName = "fairshard.dev/admission"
	// FieldManager owns every field the admission controller applies.
	FieldManager = "fairshard-admission"
)

// Device attributes (domain DriverName) and capacities of a published device.
const (
	AttrType              = "type" // one of the DeviceType values
	AttrUUID              = "uuid" // NVML UUID of the physical GPU
	AttrProductName       = "productName"
	AttrArchitecture      = "architecture"
	AttrComputeCapability = "cudaComputeCapability"
	AttrDriverVersion     = "driverVersion"
	AttrIsolation         = "isolation" // enforcement tier that shares get
	CapMemory             = "memory"    // bytes

	DeviceTypeGPU   = "gpu"
	DeviceTypeShare = "share"
)

// Labels, annotations and the scheduling gate.
const (
	// LabelManaged marks a root Cohort whose milligpu quota we write.
	LabelManaged = "fairshard.dev/managed"
	// LabelPlacement is put on every pod of an admitted Workload through
	// podSetUpdates; pods that carry it are born with GatePlacement.
	LabelPlacement = "fairshard.dev/placement"
	// LabelPreemptible on a WorkloadPriorityClass: "false" makes its work non-preemptible.
	LabelPreemptible = "fairshard.dev/preemptible"
	// GatePlacement is the scheduling gate that the placer removes.
	GatePlacement = "fairshard.dev/placement"
	// AnnotationDeserved on a Cohort: what it deserves, in milligpu ("8k" is 8
	// GPUs), or "unlimited". A ClusterQueue deserves its nominalQuota.
	AnnotationDeserved = "fairshard.dev/deserved"
	// AnnotationLimit on a ClusterQueue or Cohort: the most it may use, in milligpu.
	AnnotationLimit = "fairshard.dev/limit"
	// AnnotationPriority on a ClusterQueue or Cohort: whose over-quota comes
	// first among siblings; 100 without it.
	AnnotationPriority = "fairshard.dev/priority"
	// AnnotationMinRuntimePreempt and AnnotationMinRuntimeReclaim on a queue: how
	// long its work runs before it may be evicted, for more important work of the
	// same queue, and for other queues.
	AnnotationMinRuntimePreempt = "fairshard.dev/min-runtime-preempt"
	AnnotationMinRuntimeReclaim = "fairshard.dev/min-runtime-reclaim"
	// AnnotationPromise on a Workload keeps the nodes it was planned on while
	// others leave for it, as JSON; written by the controller before they are told.
	AnnotationPromise = "fairshard.dev/promise"
	// AnnotationDemand on a Workload holds what its podSets ask for, as JSON
	// (admission/kueue.Demand); written by the Workload webhook with the charge.
	AnnotationDemand = "fairshard.dev/demand"
	// AnnotationUnresolved on a Workload says why its charge is not known yet.
	AnnotationUnresolved = "fairshard.dev/unresolved"
	// AnnotationResolve is changed by the controller to have the webhook look again.
	AnnotationResolve = "fairshard.dev/resolve"
)

// Charges in milligpu.
const (
	// MilliPerGPU is what one whole GPU costs.
	MilliPerGPU = 1000
	// HeadroomMilliGPU is the nominal quota of a managed root Cohort (1G): more
	// than any fleet, so that every resolved Workload is reserved at once.
	HeadroomMilliGPU = 1_000_000_000
	// UnresolvedMilliGPU is charged per pod while a demand is unknown. It is
	// above the headroom, so that such a Workload is never reserved.
	UnresolvedMilliGPU = 2_000_000_000
)
