package snapshot

import (
	"math/bits"

	"github.com/fairshard/fairshard/classes/quantity"
)

// Charge returns the bytes that a share of want bytes takes of a GPU: rounded
// up to Min plus whole steps; 0 takes everything, as the published default says.
func (g *GPU) Charge(want quantity.Bytes) quantity.Bytes {
	if want <= 0 {
		return g.Usable
	}
	if want <= g.Min {
		return g.Min
	}
	return (want - g.Min).RoundUp(g.Step).Add(g.Min)
}

// Part returns ppm millionths of the GPU's memory, rounded down to Min plus
// whole steps, at least Min.
func (g *GPU) Part(ppm int64) quantity.Bytes {
	hi, lo := bits.Mul64(uint64(g.Usable), uint64(ppm))
	if hi >= 1_000_000 {
		return g.Usable
	}
	part, _ := bits.Div64(hi, lo, 1_000_000)
	bytes := min(quantity.Bytes(part), g.Usable)
	if bytes <= g.Min {
		return g.Min
	}
	return (bytes - g.Min).RoundDown(g.Step).Add(g.Min)
}

// Bytes is what one share of r takes of the GPU.
func (g *GPU) Bytes(r Request) quantity.Bytes {
	if r.PPM > 0 {
		return g.Part(r.PPM)
	}
	return g.Charge(r.Bytes)
}

// alike reports whether nothing but the name tells g from o.
func (g *GPU) alike(o *GPU) bool {
	same := *o
	same.UUID = g.UUID
	return same == *g
}

// Unused reports whether nobody holds anything of the GPU.
func (g *GPU) Unused() bool {
	return !g.WholeUsed && g.Shares == 0 && g.ShareUsed == 0 && g.MIGUsed == 0
}

// FitsWhole reports whether the whole GPU is free.
func (g *GPU) FitsWhole() bool { return g.Healthy && g.Unused() }

// shareFree is what shares could take of the GPU now.
func (g *GPU) shareFree() quantity.Bytes {
	if !g.Healthy || g.NoShares || g.WholeUsed || g.MIGUsed != 0 {
		return 0
	}
	return g.Usable.Sub(g.ShareUsed)
}

// Fits reports whether one device of r is free on g.
func (g *GPU) Fits(r Request) bool {
	_, fits := g.device(r)
	return fits
}

// device returns what one device of r would be on g; its GPU is not set.
func (g *GPU) device(r Request) (Held, bool) {
	switch r.Kind {
	case Whole:
		return Held{Kind: Whole}, g.FitsWhole()
	case Share:
		bytes := g.Bytes(r)
		return Held{Kind: Share, Bytes: bytes}, bytes <= g.shareFree() && g.shareFree() > 0
	default:
		if !g.Healthy || !g.MIG || g.WholeUsed || g.Shares > 0 || g.ShareUsed > 0 {
			return Held{}, false
		}
		mask, free := r.Profile.start(g.MIGUsed)
		return Held{Kind: MIG, Mask: mask}, free
	}
}

// hold marks d as held.
func (g *GPU) hold(d Held) {
	switch d.Kind {
	case Whole:
		g.WholeUsed = true
	case Share:
		g.ShareUsed = g.ShareUsed.Add(d.Bytes)
		g.Shares++
	case MIG:
		g.MIGUsed |= d.Mask
	}
}

// give is the reverse of hold.
func (g *GPU) give(d Held) {
	switch d.Kind {
	case Whole:
		g.WholeUsed = false
	case Share:
		g.ShareUsed = g.ShareUsed.Sub(d.Bytes)
		g.Shares = max(g.Shares-1, 0)
	case MIG:
		g.MIGUsed &^= d.Mask
	}
}

// isFree reports whether exactly d could be held now; health is not asked.
func (g *GPU) isFree(d Held) bool {
	switch d.Kind {
	case Whole:
		return g.Unused()
	case Share:
		return !g.WholeUsed && g.MIGUsed == 0 && d.Bytes <= g.Usable.Sub(g.ShareUsed)
	default:
		return !g.WholeUsed && g.Shares == 0 && g.ShareUsed == 0 && g.MIGUsed&d.Mask == 0
	}
}

// freeMilli is what is free of the GPU in thousandths, rounded down.
func (g *GPU) freeMilli() quantity.MilliGPU {
	switch {
	case !g.Healthy || g.WholeUsed:
		return 0
	case g.MIGUsed != 0:
		return quantity.PerGPU * quantity.MilliGPU(memorySlices-bits.OnesCount8(g.MIGUsed)) / memorySlices
	case g.ShareUsed > 0:
		return quantity.PerGPU - min(quantity.PerGPU, quantity.OfShare(g.ShareUsed, g.Usable))
	default:
		return quantity.PerGPU
	}
}

// Empty returns g with nothing held.
func (g *GPU) Empty() GPU {
	empty := *g
	empty.WholeUsed, empty.ShareUsed, empty.Shares, empty.MIGUsed = false, 0, 0, 0
	return empty
}
