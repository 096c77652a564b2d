{{/* A node of three members: Pod 0 is where it begins, the two others come with a token of a member each. */}}
{{- define "leafcast.isTrio" -}}
{{- if eq (int .Values.members) 3 -}}
yes
{{- end -}}
{{- end -}}

{{/* Whether nodes from elsewhere reach each member by a Service of its own. */}}
{{- define "leafcast.reached" -}}
{{- if or .Values.listen.host (ne .Values.service.type "ClusterIP") -}}
yes
{{- end -}}
{{- end -}}

{{/* In the words of a Pod's shell: each member has its Pod's name before that of all. */}}
{{- define "leafcast.memberHost" -}}
{{- printf "$POD_NAME.%s" (include "leafcast.ownHost" .) -}}
{{- end -}}

{{/* Of three members each has its Pod's name before it. */}}
{{- define "leafcast.memberListen" -}}
{{- printf "%s%s:%d" (empty (include "leafcast.isTrio" .) | ternary "" "$POD_NAME.") (include "leafcast.host" .) (int .Values.listen.port) -}}
{{- end -}}

{{- define "leafcast.podName" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end -}}

{{/* Who lacks its token waits and says so, where the program would end and start again. */}}
{{- define "leafcast.awaitToken" -}}
wait_for() {
  echo "Pod $POD_NAME waits for key $1 of Secret {{ .Values.join.secret }}: a token that" \
    "\`leafcast node add $2 -o FILE\` writes at the centre; a new key is seen within two minutes"
}
here() {
  {{- if eq .Values.role "centre" }}
  [ "${POD_NAME##*-}" = 0 ] || [ -s "/join/$POD_NAME" ]
  {{- else }}
  [ -s "/join/$POD_NAME" ] || { [ "${POD_NAME##*-}" = 0 ] && [ -s /join/{{ .Values.join.key }} ]; }
  {{- end }}
}
{{- if eq .Values.role "centre" }}
here || wait_for "$POD_NAME" "/ --member"
{{- else }}
if ! here; then
  case "$POD_NAME" in
    *-0) wait_for {{ .Values.join.key }} "/PATH/OF/THE/NODE --relay --approved" ;;
    *) wait_for "$POD_NAME" "/PATH/OF/THE/NODE --member" ;;
  esac
fi
{{- end }}
until here; do sleep 2; done
{{- end -}}

{{/* A centre in one Pod, or Pod 0 of one in three. */}}
{{- define "leafcast.runCentre" -}}
# How long a start may take is for the probes to say.
set -- up --foreground --regions=0 --timeout=3600 --data-dir=/tree/node --log-format={{ .Values.logFormat }} \
  "--listen={{ include "leafcast.memberListen" . }}"
{{- if include "leafcast.certificateSecret" . }}
set -- "$@" --tls-cert=/certificate/tls.crt --tls-key=/certificate/tls.key
{{- if .Values.listen.authorities }}
set -- "$@" --tls-ca=/certificate/ca.crt
{{- end }}
{{- end }}
{{- if .Values.hub.secret }}
# Once it is a member the state of its node says so.
[ -e /tree/node/member.json ] || set -- "$@" --workloads-kubeconfig=/hub/{{ .Values.hub.key }}
{{- end }}
# It writes its log into a file alone.
umask 077
mkdir -p /tree/node
touch /tree/node/daemon.log
tail -n 0 -F /tree/node/daemon.log &
{{- end -}}

{{/* A centre in one Pod; on the volume of the chart 0.2.0 its files are those of `leafcast layout`. */}}
{{- define "leafcast.runAlone" -}}
if [ -e /tree/centre/node.yaml ]; then
  {{- if include "leafcast.certificateSecret" . }}
  echo "this volume is of the chart 0.2.0, whose centre shows no certificate of yours:" \
    "leave out listen.certificateSecret and listen.issuer" >&2
  exit 1
  {{- end }}
  # Commands look for the centre there.
  [ -e /tree/node ] || ln -s . /tree/node
  # Without its server the program ends, too.
  (nats-server --config /tree/centre/nats.conf || true; kill 1) &
  set -- run center --config=/tree/centre/node.yaml --log-format={{ .Values.logFormat }}
else
{{ include "leafcast.runCentre" . | indent 2 }}
fi
exec leafcast "$@" --health-host=0.0.0.0 --health-port=8086
{{- end -}}

{{- define "leafcast.runMember" -}}
{{- if eq .Values.role "centre" -}}
# A token for the first is that of a machine that takes its place.
if [ "${POD_NAME##*-}" = 0 ] && ! [ -s "/join/$POD_NAME" ]; then
{{ include "leafcast.runCentre" . | indent 2 }}
else
  set -- join "/join/$POD_NAME" --data-dir=/tree/node "--listen={{ include "leafcast.memberListen" . }}" \
    "--member-host={{ include "leafcast.memberHost" . }}:6222" --log-format={{ .Values.logFormat }}
fi
{{- else -}}
set -- --data-dir=/tree/node "--listen={{ include "leafcast.memberListen" . }}" --log-format={{ .Values.logFormat }}
{{- with .Values.join.durability }}
set -- "$@" --durability={{ . }}
{{- end }}
if [ -s "/join/$POD_NAME" ]; then
  set -- join "/join/$POD_NAME" "$@" "--member-host={{ include "leafcast.memberHost" . }}:6222"
else
  set -- join /join/{{ .Values.join.key }} "$@"
fi
{{- end }}
exec leafcast "$@" --health-host=0.0.0.0 --health-port=8086
{{- end -}}

{{/* Two members on one machine would be lost together. */}}
{{- define "leafcast.apart" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "leafcast.selector" . | nindent 12 }}
{{- end -}}
