"""What people bring to the tree of API servers, as they write it."""

STORES = """
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncTarget
metadata: {name: store-9, labels: {id: store-9}}
spec:
  cells: {}
  unschedulable: false
  supportedAPIExports: [{export: kubernetes}]
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: Location
metadata:
  name: store-1
  labels: {env: prod, stage: live}
  annotations: {scheduling.kcp.io/labels: env=prod}
spec:
  resource: {group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}
  description: the first store
  availableSelectorLabels: [{key: env, values: [prod, test], description: what it is for}]
  instanceSelector: {matchLabels: {id: region-1-site-1}}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: Location
metadata: {name: store-2, labels: {env: prod, stage: spare}}
spec:
  resource: {group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}
  instanceSelector: {matchLabels: {id: region-1-site-2}}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: edge-placement-c}
spec:
  locationSelectors:
  - matchLabels: {env: prod}
    matchExpressions: [{key: stage, operator: In, values: [live]}]
  downsync:
  - apiGroup: ""
    resources: [configmaps]
    namespaces: [commonstuff]
    namespaceSelectors: [{matchLabels: {common: "si"}}]
    objectNames: [httpd-htdocs]
    labelSelectors: [{matchLabels: {app: httpd}}]
  - apiGroup: apps
    resources: [deployments]
    namespaces: ["*"]
    namespaceSelectors: [{matchLabels: {common: "si"}}]
    objectNames: ["*"]
  wantSingletonReportedState: true
  upsync: []
---
apiVersion: v1
kind: Namespace
metadata: {name: commonstuff, labels: {common: "si"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: httpd-htdocs, namespace: commonstuff, labels: {app: httpd}}
data: {index.html: hello}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: not-named, namespace: commonstuff, labels: {app: httpd}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: commond, namespace: commonstuff}
spec:
  selector: {matchLabels: {app: common}}
  template:
    metadata: {labels: {app: common}}
    spec: {containers: [{name: httpd, image: "library/httpd:2.4"}]}
"""

STATEFUL = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: stateful}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: loose, namespace: stateful, annotations: {leafcast.io/on-removal: orphan}}
data: {key: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: stateful}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:1"}]}
"""

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
