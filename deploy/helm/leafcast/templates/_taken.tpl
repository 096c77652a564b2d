{{/* What no server takes, and no schema can say. */}}
{{- define "leafcast.checkTaken" -}}
{{- $name := include "leafcast.fullname" . -}}
{{- $old := semverCompare "<1.34.0-0" .Capabilities.KubeVersion.Version -}}
{{- if or (contains "." $name) (and $old (regexMatch "^[0-9]" $name)) -}}
{{- fail (printf "%s: no Service is called that: its name begins with a letter and has no dot; say --set fullnameOverride=NAME" $name) -}}
{{- end -}}

{{- $resources := default dict .Values.resources -}}
{{- $limits := default dict $resources.limits -}}
{{- range $kind, $asked := $resources.requests -}}
{{- $limit := get $limits $kind -}}
{{- if not (has $kind (list "cpu" "memory" "ephemeral-storage")) -}}
{{- if ne (toString $asked) (toString $limit) -}}
{{- fail (printf "resources.requests.%s: %v: of this a Pod gets what its limit says; say the same in resources.limits" $kind $asked) -}}
{{- end -}}
{{- else if hasKey $limits $kind -}}
{{- if gt (include "leafcast.bytes" (toString $asked) | float64) (include "leafcast.bytes" (toString $limit) | float64) -}}
{{- fail (printf "resources.requests.%s: %v: that is more than its limit, %v" $kind $asked $limit) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- range .Values.networkPolicy.egress -}}
{{- range .ports -}}
{{- if and .endPort (lt (int .endPort) (int .port)) -}}
{{- fail (printf "networkPolicy.egress: endPort %d is before port %d" (int .endPort) (int .port)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Without a cluster it is not known what it has. */ -}}
{{- $apis := .Capabilities.APIVersions -}}
{{- if and .Values.listen.issuer ($apis.Has "apps/v1/StatefulSet") (not ($apis.Has "cert-manager.io/v1/Certificate")) -}}
{{- fail "listen.issuer: this cluster has no kind Certificate of cert-manager; install that first, or name listen.certificateSecret alone" -}}
{{- end -}}
{{- end -}}
