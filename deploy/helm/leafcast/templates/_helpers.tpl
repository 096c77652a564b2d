{{- define "leafcast.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimAll "-." -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 45 | trimAll "-." -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 45 | trimAll "-." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "leafcast.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* A hub that is in this cluster, too, sends none of these anywhere: that is what stays says. */}}
{{- define "leafcast.labels" -}}
{{ include "leafcast.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: {{ .Values.role }}
app.kubernetes.io/part-of: leafcast
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
leafcast.io/stays: "true"
{{- end -}}

{{- define "leafcast.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ $tag }}
{{- end -}}
{{- end -}}

{{/* The Service by which a Pod is watched. */}}
{{- define "leafcast.healthName" -}}
{{- printf "%s-health" (include "leafcast.fullname" .) -}}
{{- end -}}

{{/* Where children dial in; of three members each has its Pod's name before it. */}}
{{- define "leafcast.host" -}}
{{- default (include "leafcast.ownHost" .) .Values.listen.host -}}
{{- end -}}

{{/* The name of the Service in this cluster. */}}
{{- define "leafcast.ownHost" -}}
{{- printf "%s.%s.svc" (include "leafcast.fullname" .) .Release.Namespace -}}
{{- end -}}

{{/* The Secret with a certificate that is not of the tree's own authority; empty for none. */}}
{{- define "leafcast.certificateSecret" -}}
{{- if .Values.listen.issuer -}}
{{- default (printf "%s-certificate" (include "leafcast.fullname" .)) .Values.listen.certificateSecret -}}
{{- else -}}
{{- .Values.listen.certificateSecret -}}
{{- end -}}
{{- end -}}

{{/* Its nats-server runs in the same container. */}}
{{- define "leafcast.resources" -}}
{{- if .Values.resources -}}
{{ toYaml .Values.resources }}
{{- else if eq .Values.role "edge" -}}
requests: {cpu: 50m, memory: 128Mi}
limits: {memory: 384Mi}
{{- else if and (eq .Values.role "relay") (not (include "leafcast.isTrio" .)) -}}
requests: {cpu: 100m, memory: 256Mi}
limits: {memory: 1Gi}
{{- else -}}
requests: {cpu: 300m, memory: 512Mi}
limits: {memory: 4Gi}
{{- end -}}
{{- end -}}

{{- define "leafcast.monitored" -}}
{{- if and .Values.monitoring.enabled (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor") -}}
yes
{{- end -}}
{{- end -}}

{{- define "leafcast.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* What an API server would ask, and how long it may take: the program may wait for its approval for a day. */}}
{{- define "leafcast.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: health}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 17280
livenessProbe:
  httpGet: {path: /livez, port: health}
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: health}
  timeoutSeconds: 5
{{- end -}}

{{/* What no schema can say with its reason. */}}
{{- define "leafcast.checks" -}}
{{- include "leafcast.checkInstalled" . -}}
{{- $role := .Values.role -}}
{{- if contains "@" (default "" .Values.join.proxy) -}}
{{- fail "join.proxy: whoever reads the Pod would read its password; write that URL under the key proxy of a Secret, and name the Secret in join.proxySecret" -}}
{{- end -}}
{{- if and .Values.join.proxy .Values.join.proxySecret -}}
{{- fail "join.proxy, join.proxySecret: both name a proxy; leave out one of them" -}}
{{- end -}}
{{- if and (eq $role "edge") (include "leafcast.isTrio" .) -}}
{{- fail "members: 3: an edge runs once; leave members at 1, or say role: centre or role: relay" -}}
{{- end -}}
{{- if and (include "leafcast.isTrio" .) (eq (int .Values.listen.port) 6222) -}}
{{- fail "listen.port: 6222: there the members reach each other; name another port" -}}
{{- end -}}
{{- if eq (int .Values.listen.port) 8086 -}}
{{- fail "listen.port: 8086: there the Pod says how it is; name another port" -}}
{{- end -}}
{{- if and (eq $role "edge") (ne .Release.Namespace "leafcast-system") -}}
{{- fail (printf "namespace %s: an edge claims its cluster by a Lease in namespace leafcast-system; install it there: --namespace leafcast-system --create-namespace" .Release.Namespace) -}}
{{- end -}}
{{- include "leafcast.checkUnused" . -}}
{{- include "leafcast.checkTaken" . -}}
{{- end -}}
