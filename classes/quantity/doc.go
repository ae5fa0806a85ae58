// Package quantity holds the integer value types of the project: Bytes and
// MilliGPU, with saturating arithmetic.
//
// Shares are integers everywhere so that the same input gives the same output
// byte for byte; floats and resource.Quantity (whose reads mutate it) stop at
// layer 2. Raw + and - on these types are for constants only.
//
// Layer 0: standard library only.
package quantity
