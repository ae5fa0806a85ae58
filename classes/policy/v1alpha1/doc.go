// Package v1alpha1 holds the FairSharePolicy object, group fairshard.dev.
//
// An AdmissionCheck of ours names one in its parameters; scenario files have
// its spec as `policy`. Every field may be left out; `admission/policy` fills
// in the defaults and says what is wrong. The CRD is generated from these types
// by a later version.
//
// Layer 2: API types only.
package v1alpha1
