package gpusim

import (
	"reflect"
	"strings"
	"testing"
)

func TestATableSurvivesTheRoundTrip(t *testing.T) {
	for _, name := range Profiles() {
		p, err := LoadProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		node, err := p.Node(0, "seed")
		if err != nil {
			t.Fatal(err)
		}
		content, err := node.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if want := 128 + 16*80 + 64*32 + MaxGPUs*2256; len(content) != want {
			t.Errorf("%s: the table has %d bytes, want %d", name, len(content), want)
		}
		again, err := Decode(content)
		if err != nil || !reflect.DeepEqual(again, node) {
			t.Errorf("%s: got %+v, %v\nwant %+v", name, again, err, node)
		}
	}
}

func TestUUIDsDependOnSeedAndIndexOnly(t *testing.T) {
	first, again := uuid("a", 0), uuid("a", 0)
	if first != again || first == uuid("a", 1) || first == uuid("b", 0) {
		t.Error("UUIDs are not a function of seed and index")
	}
	if len(uuid("a", 0)) != 40 {
		t.Errorf("UUID %s has %d characters, a GPU's has 40", uuid("a", 0), len(uuid("a", 0)))
	}
}

func TestABadProfileSaysWhatIsWrong(t *testing.T) {
	const good = `{model: X, architecture: Hopper, computeCapability: "9.0", driverVersion: "1", memoryMiB: 100, reservedMiB: 1, count: 1, pciAddresses: ["0000:17:00.0"]}`
	if _, err := ParseProfile([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for change, want := range map[string]string{
		`model: X|colour: X`:          "colour",
		`Hopper|Bulldozer`:            "Bulldozer",
		`"9.0"|"9"`:                   `must look like "9.0"`,
		`memoryMiB: 100|memoryMiB: 0`: "memoryMiB",
		`count: 1|count: 2`:           "count 2",
		`["0000:17:00.0"]|["17:00"]`:  "17:00",
		`["0000:17:00.0"]|["0000:17:00.0", "0000:17:00.0"]`: "comes twice",
		`count: 1|count: 1, numaNodes: [0, 1]`:              "numaNodes",
		`count: 1|count: 1, uuids: [a, b]`:                  "uuids",
		`count: 1|count: 1, uuids: [""]`:                    "uuid",
		`count: 1|count: 1, numaNodes: [4294967296]`:        "numaNode",
		`count: 1|count: 1, mig: [{name: 1g.10gb}]`:         "migCapable must be true",
		`count: 1|count: 1, migCapable: true, mig: [{name: x, slices: 1, size: 4, most: 1, placements: [6]}]`: "leaves the GPU",
		`"9.0"|"9.-1"`:       `must look like "9.0"`,
		`model: X|model: ""`: "model",
	} {
		from, to, _ := strings.Cut(change, "|")
		if _, err := ParseProfile([]byte(strings.Replace(good, from, to, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", change, err, want)
		}
	}
	if _, err := LoadProfile("h200"); err == nil || !strings.Contains(err.Error(), "h100-80gb") {
		t.Errorf("an unknown profile must list the known ones, got %v", err)
	}
}

func FuzzParseProfile(f *testing.F) {
	f.Add([]byte(`{model: X, architecture: Hopper, computeCapability: "9.0", driverVersion: "1", memoryMiB: 100, count: 1, pciAddresses: ["0000:17:00.0"]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		p, err := ParseProfile(content)
		if err != nil {
			return
		}
		node, err := p.Node(0, "seed")
		if err != nil {
			t.Fatalf("a valid profile makes no node: %v", err)
		}
		if _, err := node.Encode(); err != nil && !strings.Contains(err.Error(), "longer than") {
			t.Fatalf("a valid profile makes no table: %v", err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Fuzz(func(_ *testing.T, content []byte) { _, _ = Decode(content) })
}
