package namespace_test

import (
	"testing"

	"github.com/fairshard/fairshard/tests/cluster/namespace"
)

func TestBindRoundTrip(t *testing.T) {
	want := namespace.Bind{Source: "/a/b", Target: "/run"}
	if got, err := namespace.ParseBind(want.String()); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "/a", "=/a", "/a="} {
		if _, err := namespace.ParseBind(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
