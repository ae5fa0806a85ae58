package snapshot

import "math/bits"

// Nodes is a set of nodes by their position in a snapshot.
type Nodes []uint64

// NewNodes returns an empty set with room for n nodes.
func NewNodes(n int) Nodes { return make(Nodes, (n+63)/64) }

// Add puts node i into the set.
func (s Nodes) Add(i int) { s[i/64] |= 1 << (i % 64) }

// Remove takes node i out.
func (s Nodes) Remove(i int) { s[i/64] &^= 1 << (i % 64) }

// Has reports whether node i is in the set.
func (s Nodes) Has(i int) bool { return i/64 < len(s) && s[i/64]&(1<<(i%64)) != 0 }

// each calls do for the nodes of s that are in all other sets too, of which nil
// ones do not count, in order, until do says stop. It is the inner loop of a full cluster: a loop
// over the other sets would make it several times slower.
func (s Nodes) each(a, b, c Nodes, do func(i int) (stop bool)) bool {
	for w, word := range s {
		if a != nil {
			word &= a[w]
		}
		if b != nil {
			word &= b[w]
		}
		if c != nil {
			word &= c[w]
		}
		for word != 0 {
			if do(w*64 + bits.TrailingZeros64(word)) {
				return true
			}
			word &= word - 1
		}
	}
	return false
}

// Without returns the nodes of s that are in also (nil = all) and not in out.
func (s Nodes) Without(out, also Nodes) Nodes {
	left := make(Nodes, len(s))
	for w := range s {
		left[w] = s[w] &^ out[w]
		if also != nil {
			left[w] &= also[w]
		}
	}
	return left
}
