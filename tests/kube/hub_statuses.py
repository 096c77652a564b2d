"""Workloads whose status comes back to a hub, and an edge that refuses one of their images."""

REFUSES = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-such-image}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [apps]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [deployments, statefulsets, daemonsets]
  validations:
  - expression: "!object.spec.template.spec.containers.exists(c, c.image.startsWith('refused'))"
    message: no such image
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-such-image}
spec: {policyName: no-such-image, validationActions: [Deny]}
"""
_POD = "{metadata: {labels: {app: %s}}, spec: {containers: [{name: c, image: 'app:1'}]}}"
_SELECTOR = "selector: {matchLabels: {app: %s}}"
KINDS = ("deploy/web", "sts/db", "ds/agent")


def workloads(namespace: str) -> str:
    """One of each kind that is rolled out."""
    said = (
        ("Deployment", "web", "replicas: 2, "),
        ("StatefulSet", "db", "replicas: 2, serviceName: db, "),
        ("DaemonSet", "agent", ""),
    )
    return "---".join(
        f"""
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{{more}{_SELECTOR % name}, template: {_POD % name}}}
"""
        for kind, name, more in said
    )
