package webhook

// Paths that are served; deployments/base/webhooks.yaml names them too.
const (
	MutatePath   = "/mutate-workload"
	ValidatePath = "/validate-claim"
)
