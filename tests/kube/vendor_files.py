"""Files of twelve shapes as vendors publish them, small but for the definitions; all made here."""

import json
from pathlib import Path

from tests.kube.vendor_definitions import (
    balancer_definition,
    cluster_definition,
    definition,
    gateway_definition,
    large,
)

LARGE, LARGEST = 300_000, 1_000_000
"""Bytes of two definitions: beyond what client-side apply can note, and near the most."""
TEMPLATE = "{metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}"


def yaml_of(*objects):
    """As YAML: JSON is some."""
    return "\n---\n".join(json.dumps(each, indent=1, ensure_ascii=False) for each in objects)


AGGREGATED = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gitops-admin}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {to-gitops: "true"}}]}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: "gitops:view"
  labels: {rbac.authorization.k8s.io/aggregate-to-view: "true", to-gitops: "true"}
rules:
- {apiGroups: [large.example.org], resources: ["*", "*/status"], verbs: [get, list, watch]}
- {nonResourceURLs: [/metrics, /healthz/*], verbs: [get]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: gitops}
---
apiVersion: v1
kind: Secret
metadata: {name: empty, namespace: gitops}
type: Opaque
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: controller, namespace: gitops, labels: {}, annotations: {}}
spec:
  replicas: 1
  serviceName: ""
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - {weight: 5, podAffinityTerm: {topologyKey: kubernetes.io/hostname,
             labelSelector: {matchLabels: {app: a}}}}
      containers:
      - name: a
        image: a@sha256:0000000000000000000000000000000000000000000000000000000000000000
        env:
        - {name: PLAIN, value: ""}
        - {name: FROM, valueFrom: {configMapKeyRef: {name: settings, key: a, optional: true}}}
        - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        ports: [{containerPort: 8080}, {name: m, containerPort: 8080, protocol: UDP}]
        resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 0.5, memory: "128974848"}}
        securityContext: {capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}
        volumeMounts: [{name: k, mountPath: /k}, {name: k, mountPath: /l, subPath: l}]
      volumes:
      - {name: k, secret: {secretName: empty, defaultMode: 0440, optional: true}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: controller, namespace: gitops}
spec:
  podSelector: {matchLabels: {app: a}}
  policyTypes: [Ingress]
  ingress: [{from: [{namespaceSelector: {}}], ports: [{port: 8082}]}, {}]
"""
WEBHOOKS = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: certs, annotations: {inject-ca-from-secret: certs/ca}}
webhooks:
- name: webhook.certs.example.org
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: webhook, namespace: certs, path: /validate}}
  failurePolicy: Fail
  matchConditions: [{name: no-leases, expression: "!(request.resource.resource == 'leases')"}]
  namespaceSelector: {matchExpressions: [{key: nobody-has-this, operator: Exists}]}
  rules:
  - {apiGroups: [certs.example.org], apiVersions: ["*"], operations: ["*"], resources: ["*/*"]}
  sideEffects: None
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: certs}
webhooks:
- name: webhook.certs.example.org
  admissionReviewVersions: [v1, v1beta1]
  clientConfig: {url: "https://127.0.0.1:1/mutate", caBundle: Cg==}
  matchPolicy: Equivalent
  objectSelector: {matchLabels: {nobody-has-this: "y"}}
  reinvocationPolicy: IfNeeded
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: Namespaced}
  sideEffects: NoneOnDryRun
  timeoutSeconds: 3
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "certs:leaderelection", namespace: kube-system}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [certs], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "certs:leaderelection", namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "certs:leaderelection"}
subjects: [{kind: ServiceAccount, name: certs, namespace: certs}, {kind: User, name: a@b.c}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: certs, namespace: certs}
automountServiceAccountToken: false
imagePullSecrets: [{name: one}]
"""
NETWORK = f"""
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: node, namespace: kube-system}}
spec:
  selector: {{matchLabels: {{app: a}}}}
  updateStrategy: {{type: RollingUpdate, rollingUpdate: {{maxUnavailable: 10%}}}}
  template:
    metadata: {{labels: {{app: a}}}}
    spec:
      hostNetwork: true
      nodeSelector: {{kubernetes.io/os: linux}}
      priorityClassName: system-node-critical
      terminationGracePeriodSeconds: 0
      tolerations: [{{effect: NoSchedule, operator: Exists}}, {{operator: Exists}}]
      initContainers: [{{name: i, image: i, restartPolicy: Always, command: [sh, -c, "a\\tb\\n"]}}]
      containers:
      - name: a
        image: a
        lifecycle: {{preStop: {{exec: {{command: [stop]}}}}}}
        livenessProbe: {{httpGet: {{path: /l, port: 99}}, periodSeconds: 10}}
        securityContext: {{privileged: true}}
        volumeMounts: [{{name: h, mountPath: /h, mountPropagation: Bidirectional}}]
      volumes:
      - {{name: h, hostPath: {{path: /var/run, type: DirectoryOrCreate}}}}
      - {{name: p, projected: {{sources: [{{serviceAccountToken: {{path: t, audience: x}}}}]}}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: kube-controllers, namespace: kube-system}}
spec: {{maxUnavailable: 1, selector: {{matchLabels: {{app: a}}}}}}
---
apiVersion: pools.example.org/v1
kind: Pool
metadata: {{name: default, namespace: kube-system}}
spec: {{cidr: 10.0.0.0/8, weights: [1, 2.5, 1e3], on: yes, deep: {{a: {{b: [[1], []]}}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: kube-controllers, namespace: kube-system}}
spec:
  replicas: 0
  strategy: {{type: Recreate}}
  selector: {{matchLabels: {{app: a}}}}
  template: {TEMPLATE}
"""
INGRESS = """
apiVersion: v1
kind: Service
metadata: {name: controller, namespace: ingress, finalizers: [example.org/lb]}
spec:
  type: LoadBalancer
  allocateLoadBalancerNodePorts: true
  clusterIP: 10.0.0.15
  externalIPs: [198.51.100.7]
  externalName: ""
  externalTrafficPolicy: Local
  healthCheckNodePort: 30027
  internalTrafficPolicy: Local
  ipFamilies: [IPv4]
  ipFamilyPolicy: SingleStack
  loadBalancerClass: example.org/lb
  loadBalancerIP: 198.51.100.8
  loadBalancerSourceRanges: [192.0.2.0/24]
  publishNotReadyAddresses: true
  selector: {app: a}
  sessionAffinity: ClientIP
  sessionAffinityConfig: {clientIP: {timeoutSeconds: 100}}
  trafficDistribution: PreferClose
  ports:
  - {name: http, port: 80, protocol: TCP, targetPort: http, nodePort: 30028, appProtocol: http}
  - {name: dns-tcp, port: 53, targetPort: 53, nodePort: 30029}
  - {name: dns, port: 53, protocol: UDP, nodePort: 30029}
---
apiVersion: v1
kind: Service
metadata: {name: headless, namespace: ingress}
spec: {clusterIP: None, selector: {app: a}, ports: [{port: 443, nodePort: null}]}
---
apiVersion: v1
kind: Service
metadata: {name: elsewhere, namespace: ingress}
spec: {type: ExternalName, externalName: example.org}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: vendor, annotations: {ingressclass.kubernetes.io/is-default-class: "false"}}
spec: {controller: example.org/ingress}
---
apiVersion: batch/v1
kind: Job
metadata: {name: admission-create, namespace: ingress}
spec:
  ttlSecondsAfterFinished: 0
  backoffLimit: 0
  template:
    spec:
      restartPolicy: OnFailure
      containers: [{name: c, image: c, args: [create, "--host=a,b"]}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: later, namespace: ingress}
spec:
  suspend: true
  manualSelector: true
  selector: {matchLabels: {app: later}}
  template:
    metadata: {labels: {app: later}}
    spec: {restartPolicy: Never, containers: [{name: c, image: c}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: ingress}
spec:
  schedule: "5 4 * * *"
  timeZone: Etc/UTC
  concurrencyPolicy: Forbid
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: ingress}
spec:
  ingressClassName: vendor
  tls: [{hosts: [a.example.org], secretName: tls}]
  rules:
  - host: a.example.org
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: {service: {name: controller, port: {name: http}}}
"""
STORAGE = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: storage-critical}
description: "for storage: and only for it"
globalDefault: false
preemptionPolicy: PreemptLowerPriority
value: 1000000000
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: replicated}
provisioner: storage.example.org
allowVolumeExpansion: true
reclaimPolicy: Delete
volumeBindingMode: WaitForFirstConsumer
parameters: {numberOfReplicas: "3", dataLocality: disabled}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: class, namespace: storage}
data:
  storageclass.yaml: |
    kind: StorageClass
    ---
    on: yes   # text within text
  trailing: "a \\n"
  folded: >-
    one
    line
binaryData: {b: AAEC/w==}
immutable: true
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store, namespace: storage}
spec:
  serviceName: store
  selector: {matchLabels: {app: a}}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Delete}
  podManagementPolicy: Parallel
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}
  volumeClaimTemplates:
  - metadata: {name: data, creationTimestamp: null}
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: replicated
      resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: vendor-disk}
spec:
  accessModes: [ReadWriteMany]
  capacity: {storage: 5Gi}
  claimRef: {namespace: storage, name: disk}
  nfs: {server: 192.0.2.1, path: /x}
  persistentVolumeReclaimPolicy: Retain
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk, namespace: storage}
spec:
  accessModes: [ReadWriteMany]
  resources: {requests: {storage: 5Gi}}
  storageClassName: ""
  volumeName: vendor-disk
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: storage.example.org}
spec: {attachRequired: true, podInfoOnMount: true, fsGroupPolicy: ReadWriteOnceWithFSType}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: sandboxed}
handler: runsc
"""
BALANCER = """
apiVersion: v1
kind: Namespace
metadata:
  name: balancer
  labels: {pod-security.kubernetes.io/enforce: privileged}
---
apiVersion: v1
kind: Secret
metadata: {name: webhook-cert, namespace: balancer}
---
apiVersion: v1
kind: Secret
metadata: {name: members, namespace: balancer}
type: kubernetes.io/basic-auth
stringData: {username: a, password: "p: #\\u00e9"}
---
apiVersion: v1
kind: LimitRange
metadata: {name: small, namespace: balancer}
spec: {limits: [{type: Container, default: {cpu: 100m}, max: {memory: 1Gi}}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: small, namespace: balancer}
spec: {hard: {pods: 10, requests.cpu: 0.25}}
"""
POLICIES = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: safe-upgrades}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [gateway.example.org], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}
  variables: [{name: channel, expression: "has(object.metadata.annotations)"}]
  validations: [{expression: "variables.channel || true", message: "no", reason: Invalid}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: safe-upgrades}
spec: {policyName: safe-upgrades, validationActions: [Deny]}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: vendor}
spec: {type: Limited, limited: {nominalConcurrencyShares: 0, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: vendor}
spec:
  priorityLevelConfiguration: {name: vendor}
  rules:
  - subjects: [{kind: Group, group: {name: vendors}}]
    nonResourceRules: [{verbs: ["*"], nonResourceURLs: [/vendor]}]
"""
SCALING = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: operators}}
spec:
  replicas:
  revisionHistoryLimit: 0
  selector: {{matchLabels: {{app: a}}}}
  template: {TEMPLATE}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: web, namespace: operators}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  maxReplicas: 5
  behavior:
    scaleDown:
      stabilizationWindowSeconds: 0
      policies: [{{type: Pods, value: 4, periodSeconds: 60}}]
  metrics:
  - type: Resource
    resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 80}}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: bare, namespace: operators}}
spec: {{selector: {{matchLabels: {{app: a}}}}, template: {TEMPLATE}}}
---
apiVersion: v1
kind: PodTemplate
metadata: {{name: shape, namespace: operators}}
template: {TEMPLATE}
"""
METRICS = """
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.example.org, labels: {k8s-app: metrics}}
spec:
  group: metrics.example.org
  groupPriorityMinimum: 100
  insecureSkipTLSVerify: true
  service: {name: metrics, namespace: kube-system}
  version: v1beta1
  versionPriority: 100
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: metrics-auth-reader, namespace: kube-system}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: extension-apiserver-authentication-reader
subjects: [{kind: ServiceAccount, name: metrics, namespace: kube-system}]
"""
NULLABLE = """
apiVersion: clusters.example.org/v1
kind: Cluster
metadata: {name: other, namespace: clusters}
spec: {storage: {nodes: [{name: a, config: null}]}}
"""
PRUNED = """
apiVersion: clusters.example.org/v1
kind: Cluster
metadata: {name: main, namespace: clusters}
spec:
  image: a:1
  mon: {count: 3}
  csi:
    cephfs:
      # kernelMountOptions: ""
    readAffinity:
  storage: {nodes: [{name: a}]}
"""


def dashboards():
    """A board with letters beyond U+FFFF, as text within text."""
    board = {"title": "\U0001f510 \u00fc \u4e2d", "rows": ["\U0001f600" * 64, "\u0007"]}
    data = {"board.json": json.dumps(board, ensure_ascii=False), "empty": ""}
    metadata = {"name": "boards", "namespace": "mesh", "annotations": {"note": "\U0001f4c8"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def operators():
    """Twenty roles and settings, a line each: as a loop over an API makes them."""
    for number in range(10):
        name = {"name": f"operator-{number}", "namespace": "operators"}
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
        yield {**role, "metadata": name, "rules": rules}
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": name,
            "data": {"n": str(number)},
        }


def write_vendor_files(folder: Path) -> tuple[list[Path], Path]:
    """The files that anyone's server-side apply takes, and the one that client-side apply takes."""
    pool = definition("pools", "pools.example.org", {"type": "object", "properties": {}})
    kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    pool["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = kept
    definitions = (large("apps", LARGE), large("sets", LARGEST))
    texts = {
        "01-gitops.yaml": f"{yaml_of(*definitions)}\n---{AGGREGATED}",
        "02-certs.yaml": f"\ufeff{WEBHOOKS}",
        "03-network.yaml": f"{yaml_of(pool)}\n---{NETWORK}",
        "04-ingress.yaml": INGRESS.replace("\n", "\r\n"),
        "05-storage.yaml": STORAGE,
        "06-balancer.yaml": f"{BALANCER}---\n{yaml_of(balancer_definition())}",
        "07-gateway.yaml": f"{yaml_of(gateway_definition())}\n---{POLICIES}",
        "08-mesh.json": json.dumps(dashboards()),
        "09-operators.json": "\n".join(map(json.dumps, operators())),
        "10-scaling.yaml": SCALING,
        "11-metrics.yaml": METRICS,
        "12-clusters.yaml": f"{yaml_of(cluster_definition())}\n---{NULLABLE}",
    }
    pruned = folder / "pruned" / "12-cluster.yaml"
    pruned.parent.mkdir(parents=True)
    pruned.write_text(PRUNED)
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    return [folder / name for name in texts], pruned
