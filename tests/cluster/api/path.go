package api

import (
	"fmt"
	"strings"
)

// resources are the kinds that `up` applies and their names in URLs.
var resources = map[string]string{
	"Namespace":                        "namespaces",
	"ServiceAccount":                   "serviceaccounts",
	"Role":                             "roles",
	"RoleBinding":                      "rolebindings",
	"ClusterRole":                      "clusterroles",
	"ClusterRoleBinding":               "clusterrolebindings",
	"CustomResourceDefinition":         "customresourcedefinitions",
	"MutatingWebhookConfiguration":     "mutatingwebhookconfigurations",
	"ValidatingWebhookConfiguration":   "validatingwebhookconfigurations",
	"MutatingAdmissionPolicy":          "mutatingadmissionpolicies",
	"MutatingAdmissionPolicyBinding":   "mutatingadmissionpolicybindings",
	"ValidatingAdmissionPolicy":        "validatingadmissionpolicies",
	"ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
	"ResourceFlavor":                   "resourceflavors",
	"ClusterQueue":                     "clusterqueues",
}

// Path is the URL path of the object.
func Path(obj Object) (string, error) {
	version, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	resource, known := resources[kind]
	if !known || version == "" || name == "" {
		return "", fmt.Errorf("find URL of %s %s %q: kind unknown or name missing", version, kind, name)
	}
	path := "/api/" + version
	if strings.Contains(version, "/") {
		path = "/apis/" + version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + resource + "/" + name, nil
}
