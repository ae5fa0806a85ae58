// Package kueue reads Kueue's own manifests and bends them to a manager that
// runs as a plain process on 127.0.0.1 instead of in a pod behind a Service.
//
// Input is the folder of Kueue's Go module (as a file system) and the address
// and certificate authority of the webhook server; output are objects in the
// order in which they must be applied. Nothing of Kueue is copied into this
// repository: the manifests are those of the version that programs/kueue names.
//
// What is bent: names and namespaces as Kueue's kustomization does it, Service
// references become URLs, and webhooks of job kinds that are not enabled are
// left out, because they would be called for kinds that nobody manages. The
// optional MutatingAdmissionPolicy is for MultiKueue and off upstream too.
//
// Pure: no cluster, no disk of its own. Tested on small manifests and, where
// the module is in the cache, on the real ones.
package kueue
