package v1alpha1

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
)

func TestDecode(t *testing.T) {
	const head = `"apiVersion":"gpu.fairshard.dev/v1alpha1","kind":"ShareConfig"`
	for name, c := range map[string]struct {
		raw, wantErr string
		want         Isolation
	}{
		"default":            {raw: `{` + head + `}`, want: IsolationAuto},
		"none":               {raw: `{` + head + `,"isolation":"None"}`, want: IsolationNone},
		"unknown field":      {raw: `{` + head + `,"isolatoin":"None"}`, wantErr: "isolatoin"},
		"wrong case":         {raw: `{` + head + `,"Isolation":"None"}`, wantErr: "Isolation"},
		"duplicate key":      {raw: `{` + head + `,"isolation":"None","isolation":"Auto"}`, wantErr: "duplicate"},
		"unknown value":      {raw: `{` + head + `,"isolation":"Strong"}`, wantErr: `use "Auto"`},
		"wrong type":         {raw: `{` + head + `,"isolation":1}`, wantErr: "decode ShareConfig"},
		"wrong kind":         {raw: `{"apiVersion":"gpu.fairshard.dev/v1alpha1","kind":"GpuConfig"}`, wantErr: "GpuConfig"},
		"wrong version":      {raw: `{"apiVersion":"gpu.fairshard.dev/v2","kind":"ShareConfig"}`, wantErr: "v2"},
		"kind in wrong case": {raw: `{"apiversion":"gpu.fairshard.dev/v1alpha1","kind":"ShareConfig"}`, wantErr: "apiversion"},
		"not JSON":           {raw: `isolation`, wantErr: "not a JSON object"},
		"an array":           {raw: `[]`, wantErr: "not a JSON object"},
		"null":               {raw: `null`, wantErr: "is not known"},
		"empty":              {raw: ``, wantErr: "not a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode([]byte(c.raw))
			if (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Fatalf("got error %v, want %q", err, c.wantErr)
			}
			if got.Isolation != c.want {
				t.Errorf("got %q, want %q", got.Isolation, c.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"gpu.fairshard.dev/v1alpha1","kind":"ShareConfig","isolation":"None"}`))
	f.Add([]byte(`{"kind":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := Decode(raw)
		if err != nil {
			if c != (ShareConfig{}) {
				t.Fatal("an error comes with a half decoded config")
			}
			return
		}
		encoded, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Decode(encoded); err != nil || again != c {
			t.Fatalf("%+v does not survive a round trip: %+v, %v", c, again, err)
		}
	})
}

func TestValidateClaimSpec(t *testing.T) {
	const twoShares = `
  requests:
  - {name: a, exactly: {deviceClassName: gpu-share.fairshard.dev, capacity: {requests: {memory: 20Gi}}}}
  - {name: b, exactly: {deviceClassName: gpu-share.fairshard.dev, capacity: {requests: {memory: 20Gi}}}}
`
	one := func(class, requests string) string {
		return `
  requests:
  - {name: a, exactly: {deviceClassName: ` + class + `, count: 8, capacity: {requests: {` + requests + `}}}}
`
	}
	for name, c := range map[string]struct{ devices, wantErr string }{
		"a shard":                     {one("gpu-share.fairshard.dev", "memory: 40G"), ""},
		"qualified name":              {one("gpu-share.fairshard.dev", "gpu.fairshard.dev/memory: 40G"), ""},
		"zero":                        {one("gpu-share.fairshard.dev", "memory: 0"), "not a positive amount"},
		"negative":                    {one("gpu-share.fairshard.dev", "memory: -1Gi"), "not a positive amount"},
		"unknown capacity":            {one("gpu-share.fairshard.dev", "compute: 50"), `use "memory"`},
		"somebody else's class":       {one("gpu.example.com", "memory: -1"), ""},
		"two shares":                  {twoShares, "add to devices.constraints {requests: [a, b]"},
		"two shares, all spread":      {twoShares + "  constraints: [{distinctAttribute: gpu.fairshard.dev/uuid}]\n", ""},
		"two shares, named spread":    {twoShares + "  constraints: [{requests: [a, b], distinctAttribute: gpu.fairshard.dev/uuid}]\n", ""},
		"two shares, half spread":     {twoShares + "  constraints: [{requests: [a], distinctAttribute: gpu.fairshard.dev/uuid}]\n", "same GPU"},
		"two shares, other attribute": {twoShares + "  constraints: [{distinctAttribute: gpu.fairshard.dev/productName}]\n", "same GPU"},
		"alternatives of one request": {`
  requests:
  - name: a
    firstAvailable:
    - {name: big, deviceClassName: gpu-share.fairshard.dev, capacity: {requests: {memory: 40G}}}
    - {name: small, deviceClassName: gpu-share.fairshard.dev, capacity: {requests: {memory: 20G}}}
`, ""},
		"an alternative beside a share": {`
  requests:
  - {name: b, exactly: {deviceClassName: gpu-share.fairshard.dev}}
  - {name: a, firstAvailable: [{name: big, deviceClassName: gpu-share.fairshard.dev}]}
`, "same GPU"},
		"an alternative beside a share, spread": {`
  requests:
  - {name: b, exactly: {deviceClassName: gpu-share.fairshard.dev}}
  - {name: a, firstAvailable: [{name: big, deviceClassName: gpu-share.fairshard.dev}]}
  constraints: [{requests: [b, a/big], distinctAttribute: gpu.fairshard.dev/uuid}]
`, ""},
		"bad parameters": {`
  config: [{opaque: {driver: gpu.fairshard.dev, parameters: {kind: Other}}}]
`, "devices.config[0].opaque.parameters"},
		"somebody else's parameters": {`
  config: [{opaque: {driver: gpu.example.com, parameters: {kind: Other}}}]
`, ""},
		"whole and share": {`
  requests:
  - {name: a, exactly: {deviceClassName: gpu-share.fairshard.dev}}
  - {name: b, exactly: {deviceClassName: gpu.fairshard.dev}}
`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var spec resourcev1.ResourceClaimSpec
			if err := yaml.UnmarshalStrict([]byte("devices:"+c.devices), &spec); err != nil {
				t.Fatal(err)
			}
			err := errors.Join(ValidateClaimSpec(&spec)...)
			if (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("got error %v, want %q", err, c.wantErr)
			}
		})
	}
}
