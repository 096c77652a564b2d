{{/* How much the volume of a new release holds. */}}
{{- define "leafcast.volumeSize" -}}
{{- default (eq .Values.role "edge" | ternary "2Gi" "10Gi") .Values.persistence.size -}}
{{- end -}}

{{/* A quantity as a number: a server writes 2048Mi as 2Gi. */}}
{{- define "leafcast.bytes" -}}
{{- $units := dict "" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 -}}
{{- $power := 1.0 -}}
{{- range list "Ki" "Mi" "Gi" "Ti" "Pi" "Ei" -}}
{{- $power = mulf $power 1024 -}}
{{- $_ := set $units . $power -}}
{{- end -}}
{{- /* 1e3, as a number may be written; E alone is a unit. */ -}}
{{- $number := regexFind "^[0-9.]+([eE][+-]?[0-9]+)?" . -}}
{{- mulf (float64 $number) (get $units (trimPrefix $number .)) | printf "%.3f" -}}
{{- end -}}

{{/* What no StatefulSet changes, and what would leave the node's keys behind. Nothing is looked up without a cluster. */}}
{{- define "leafcast.checkInstalled" -}}
{{- $release := .Release.Name -}}
{{- $name := include "leafcast.fullname" . -}}
{{- $called := default .Chart.Name .Values.nameOverride -}}
{{- $or := "or --reset-then-reuse-values" -}}
{{- $found := lookup "apps/v1" "StatefulSet" .Release.Namespace $name -}}
{{- if $found -}}
{{- $labels := default dict $found.metadata.labels -}}
{{- /* Of another release: Helm says that. */ -}}
{{- if eq $release (get $labels "app.kubernetes.io/instance") -}}
{{- $was := get $labels "app.kubernetes.io/component" -}}
{{- if and $was (ne $was .Values.role) -}}
{{- fail (printf "role: %s: release %s was installed with role %s, and its volume has the keys of that node; say --set role=%s, %s; another role is another release" .Values.role $release $was $was $or) -}}
{{- end -}}
{{- $was = get $found.spec.selector.matchLabels "app.kubernetes.io/name" -}}
{{- if ne $was $called -}}
{{- fail (printf "nameOverride: release %s was installed with %s, and no StatefulSet changes that; say --set nameOverride=%s, %s" $release $was $was $or) -}}
{{- end -}}
{{- $was = eq $found.spec.podManagementPolicy "Parallel" | ternary 3 1 -}}
{{- if ne $was (eq (int .Values.members) 3 | ternary 3 1) -}}
{{- fail (printf "members: %d: release %s was installed with another number, and no StatefulSet changes that; say --set members=%d, %s, or install another release and let its node join anew" (int .Values.members) $release $was $or) -}}
{{- end -}}
{{- $volume := (first $found.spec.volumeClaimTemplates).spec -}}
{{- $was = $volume.resources.requests.storage -}}
{{- $size := include "leafcast.volumeSize" . -}}
{{- if ne (include "leafcast.bytes" $was) (include "leafcast.bytes" $size) -}}
{{- fail (printf "persistence.size: %s: release %s was installed with %s, and no StatefulSet changes that; say --set persistence.size=%s, %s. A volume grows by its claim, where its class allows that: kubectl -n %s edit pvc tree-%s-0" $size $release $was $was $or .Release.Namespace $name) -}}
{{- end -}}
{{- $was = default "" $volume.storageClassName -}}
{{- if ne $was (default "" .Values.persistence.storageClass) -}}
{{- fail (printf "persistence.storageClass: %s: release %s was installed with %s, and no volume changes its class; say --set persistence.storageClass=%s, %s" (default "none" .Values.persistence.storageClass) $release (default "none" $was) $was $or) -}}
{{- end -}}
{{- end -}}
{{- else if .Release.IsUpgrade -}}
{{- range (lookup "apps/v1" "StatefulSet" .Release.Namespace "").items -}}
{{- $labels := default dict .metadata.labels -}}
{{- $was := get $labels "app.kubernetes.io/name" -}}
{{- /* A chart above this one may have more than one of it, by other names. */ -}}
{{- if and (eq $release (get $labels "app.kubernetes.io/instance")) (eq "leafcast" (get $labels "app.kubernetes.io/part-of")) (or $.Chart.IsRoot (eq $was $called)) -}}
{{- fail (printf "nameOverride, fullnameOverride: release %s was installed as %s, and %s would begin without the keys on its volume; say --set nameOverride=%s,fullnameOverride=%s, %s" $release .metadata.name $name $was .metadata.name $or) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
