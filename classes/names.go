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
