package webhook

import (
	"encoding/json"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
)

// diff returns the JSON patch from before to after. Both are encoded the same
// way, so what the type leaves out or adds on its own shows in neither, and
// the patch touches only what was changed.
func diff(before, after any) ([]jsonpatch.JsonPatchOperation, error) {
	old, err := json.Marshal(before)
	if err != nil {
		return nil, fmt.Errorf("encode the object before: %w", err)
	}
	changed, err := json.Marshal(after)
	if err != nil {
		return nil, fmt.Errorf("encode the object after: %w", err)
	}
	operations, err := jsonpatch.CreatePatch(old, changed)
	if err != nil {
		return nil, fmt.Errorf("compare the objects: %w", err)
	}
	return operations, nil
}
