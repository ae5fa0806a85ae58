package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"

	sigsjson "sigs.k8s.io/json"

	"github.com/fairshard/fairshard/classes"
)

// APIVersion and Kind of the parameters.
const (
	APIVersion = classes.DriverName + "/v1alpha1"
	Kind       = "ShareConfig"
)

// Isolation is how strictly the limits of a claim are to be enforced.
type Isolation string

// The values of Isolation.
const (
	// IsolationAuto takes the strongest tier that the node has.
	IsolationAuto Isolation = "Auto"
	// IsolationNone only tells the container its limits.
	IsolationNone Isolation = "None"
)

// ShareConfig is the opaque parameters of a claim for our driver.
type ShareConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Isolation defaults to Auto.
	Isolation Isolation `json:"isolation,omitempty"`
}

// Default fills in what was left out.
func (c *ShareConfig) Default() {
	if c.APIVersion == "" {
		c.APIVersion, c.Kind = APIVersion, Kind
	}
	if c.Isolation == "" {
		c.Isolation = IsolationAuto
	}
}

// Validate says what is wrong with a config whose defaults are filled in.
func (c *ShareConfig) Validate() error {
	switch c.Isolation {
	case IsolationAuto, IsolationNone:
		return nil
	default:
		return fmt.Errorf("isolation is %q, which is not known: use %q (default) or %q", c.Isolation, IsolationAuto, IsolationNone)
	}
}

// Decode reads opaque parameters strictly: an unknown field, a duplicate key,
// another kind or version is an error, because a misspelled limit that is
// silently ignored is worse than a claim that is refused.
func Decode(raw []byte) (ShareConfig, error) {
	var head struct{ APIVersion, Kind string }
	if err := json.Unmarshal(raw, &head); err != nil {
		return ShareConfig{}, fmt.Errorf("decode parameters of %s: not a JSON object with apiVersion and kind: %w", classes.DriverName, err)
	}
	if head.APIVersion != APIVersion || head.Kind != Kind {
		return ShareConfig{}, fmt.Errorf("decode parameters of %s: apiVersion %q, kind %q is not known: use apiVersion %q, kind %q",
			classes.DriverName, head.APIVersion, head.Kind, APIVersion, Kind)
	}
	var c ShareConfig
	strict, err := sigsjson.UnmarshalStrict(raw, &c)
	if err == nil {
		err = errors.Join(strict...)
	}
	if err != nil {
		return ShareConfig{}, fmt.Errorf("decode %s: %w: remove or correct the field; the only optional one is isolation", Kind, err)
	}
	if c.APIVersion != APIVersion || c.Kind != Kind {
		return ShareConfig{}, fmt.Errorf("decode %s: apiVersion and kind must be spelled exactly so", Kind)
	}
	c.Default()
	if err := c.Validate(); err != nil {
		return ShareConfig{}, fmt.Errorf("validate %s: %w", Kind, err)
	}
	return c, nil
}
