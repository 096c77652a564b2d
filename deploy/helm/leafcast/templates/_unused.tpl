{{/* A value that differs from its default, where nothing reads it: list . WHY NAME... */}}
{{- define "leafcast.leaveOut" -}}
{{- $values := (index . 0).Values -}}
{{- $why := index . 1 -}}
{{- $defaults := dict
    "hub.key" "hub.kubeconfig"
    "hub.secret" "leafcast-hub"
    "join.key" "join"
    "join.secret" "leafcast-join"
    "listen.port" 7422
    "monitoring.from" (list (dict "namespaceSelector" dict))
    "monitoring.interval" "30s"
    "podDisruptionBudget.maxUnavailable" 1
    "rbac.create" true
    "service.type" "ClusterIP"
-}}
{{- range $name := slice . 2 -}}
{{- $value := $values -}}
{{- range splitList "." $name -}}
{{- $value = get $value . -}}
{{- end -}}
{{- $given := not (empty $value) -}}
{{- if hasKey $defaults $name -}}
{{- /* Empty text names nothing. */ -}}
{{- $given = and (ne (toString $value) "") (ne (toJson $value) (get $defaults $name | toJson)) -}}
{{- end -}}
{{- if $given -}}
{{- fail (printf "%s: %s" $name $why) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A label that the chart, or a controller, sets itself: list . NAME-OF-THE-VALUE MORE-LABELS... */}}
{{- define "leafcast.checkLabels" -}}
{{- $top := index . 0 -}}
{{- $name := index . 1 -}}
{{- $value := $top.Values -}}
{{- range splitList "." $name -}}
{{- $value = get $value . -}}
{{- end -}}
{{- $own := concat (include "leafcast.labels" $top | fromYaml | keys) (slice . 2) -}}
{{- range $label, $_ := default dict $value -}}
{{- if has $label $own -}}
{{- fail (printf "%s: %s is not for you to set, as it is set for each release; leave it out" $name $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Values that would do nothing, by the role and by each other. */}}
{{- define "leafcast.checkUnused" -}}
{{- $role := .Values.role -}}
{{- $trio := include "leafcast.isTrio" . -}}
{{- $of := printf "%s %s" (eq $role "edge" | ternary "an" "a") $role -}}

{{- include "leafcast.leaveOut" (list . "the nats-server runs in the container of the program; say resources" "serverResources") -}}

{{- if eq $role "edge" -}}
{{- include "leafcast.leaveOut" (list . "nothing hangs below an edge; leave it out, or say role: relay"
    "listen.host" "listen.port" "service.type" "service.annotations" "service.loadBalancerSourceRanges"
    "networkPolicy.children") -}}
{{- else -}}
{{- include "leafcast.leaveOut" (list . (printf "%s has no rights on its cluster; leave it out, or say role: edge" $of)
    "rbac.create" "rbac.namespaces") -}}
{{- end -}}

{{- if eq $role "centre" -}}
{{- include "leafcast.leaveOut" (list . "a centre has no parent that it joins; leave it out, or say role: relay"
    "join.key" "join.proxy" "join.proxySecret" "join.durability") -}}
{{- include "leafcast.leaveOut" (list . "the centre of the chart listens at 7422; leave it out" "listen.port") -}}
{{- if not $trio -}}
{{- include "leafcast.leaveOut" (list . "a centre in one Pod joins nobody; leave it out, or say members: 3" "join.secret") -}}
{{- end -}}
{{- if not .Values.hub.secret -}}
{{- include "leafcast.leaveOut" (list . "there is no Secret with a kubeconfig; leave it out, or name hub.secret" "hub.key") -}}
{{- end -}}
{{- else -}}
{{- include "leafcast.leaveOut" (list . (printf "%s works on no hub; leave it out, or say role: centre" $of)
    "hub.secret" "hub.key") -}}
{{- end -}}

{{- if eq $role "edge" -}}
{{- include "leafcast.leaveOut" (list . "nothing hangs below an edge, to which it would show a certificate; leave it out, or say role: relay"
    "listen.certificateSecret" "listen.issuer" "listen.authorities") -}}
{{- else if not (include "leafcast.certificateSecret" .) -}}
{{- include "leafcast.leaveOut" (list . "the tree's own authority signs where there is no certificate of your own; name listen.certificateSecret or listen.issuer, too"
    "listen.authorities") -}}
{{- end -}}

{{- if $trio -}}
{{- include "leafcast.leaveOut" (list . "a member goes out through no proxy yet; leave it out, or leave members at 1"
    "join.proxy" "join.proxySecret") -}}
{{- include "leafcast.leaveOut" (list . "the three members show one certificate of the tree's own authority; leave it out, or leave members at 1"
    "listen.certificateSecret" "listen.issuer") -}}
{{- if not (include "leafcast.reached" .) -}}
{{- include "leafcast.leaveOut" (list . "no Service leads to the members from elsewhere; leave it out, or say service.type or listen.host"
    "service.annotations") -}}
{{- end -}}
{{- end -}}

{{- if ne .Values.service.type "LoadBalancer" -}}
{{- include "leafcast.leaveOut" (list . (printf "a Service of type %s has no load balancer; leave it out, or say service.type: LoadBalancer" .Values.service.type)
    "service.loadBalancerSourceRanges") -}}
{{- end -}}
{{- if not .Values.rbac.create -}}
{{- include "leafcast.leaveOut" (list . "the chart makes no rights; leave it out, or leave rbac.create at true" "rbac.namespaces") -}}
{{- end -}}
{{- if not .Values.networkPolicy.enabled -}}
{{- include "leafcast.leaveOut" (list . "there is no NetworkPolicy; leave it out, or leave networkPolicy.enabled at true"
    "networkPolicy.children" "networkPolicy.egress" "monitoring.from") -}}
{{- end -}}
{{- if not .Values.monitoring.enabled -}}
{{- include "leafcast.leaveOut" (list . "there is no ServiceMonitor; leave it out, or leave monitoring.enabled at true"
    "monitoring.from" "monitoring.interval" "monitoring.labels") -}}
{{- end -}}
{{- if not .Values.podDisruptionBudget.enabled -}}
{{- include "leafcast.leaveOut" (list . "there is no PodDisruptionBudget; leave it out, or leave podDisruptionBudget.enabled at true"
    "podDisruptionBudget.maxUnavailable") -}}
{{- end -}}

{{- include "leafcast.checkLabels" (list . "podLabels"
    "apps.kubernetes.io/pod-index" "controller-revision-hash" "statefulset.kubernetes.io/pod-name") -}}
{{- include "leafcast.checkLabels" (list . "monitoring.labels") -}}
{{- end -}}
