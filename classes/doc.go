// Package classes is the vocabulary that the driver and the admission
// controller share: domains, driver and class names, attribute and capacity
// names, labels, annotations, and the closed list of reason codes.
//
// It holds names and nothing else, so that `admission` and `driver` never
// import each other. It must not import anything but the standard library.
// A name that appears in YAML a user writes is part of the API: it is never
// renamed, only added to.
//
// Layer 0. Tested by the packages that use it.
package classes
