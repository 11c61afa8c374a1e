{{- define "ucm.name" -}}
{{- if contains "ucm" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-ucm" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "ucm.selector" -}}
app.kubernetes.io/name: ucm
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ucm.labels" -}}
{{ include "ucm.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "ucm.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- /* A directory of the daemon's own in the memory that engines share with it: it makes it with mode 0700. */}}
{{- define "ucm.socket" -}}
/dev/shm/ucm-{{ .Values.user.id }}/ucm.sock
{{- end }}

{{- define "ucm.pod" -}}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .Values.user.id }}
  runAsGroup: {{ .Values.user.group }}
  fsGroup: {{ .Values.user.fsGroup }}
  # Else each start would touch every block of the store.
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "ucm.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- /* The daemon's container, of a pod that has the volume "store" and, unless it has the node's, "memory". */}}
{{- define "ucm.daemon" -}}
{{- $gib := add (mul .Values.daemon.stagingGiB .Values.daemon.engines) .Values.store.cacheGiB .Values.daemon.heapGiB 1 -}}
{{- $memory := .Values.daemon.memory | default (printf "%dGi" $gib) -}}
name: ucm
{{ include "ucm.image" . }}
command: [/opt/ucm/bin/ucm, serve]
args:
  - --staging={{ .Values.daemon.stagingGiB }}GiB
  - --metrics-host=$(POD_IP)
  - --metrics-port={{ .Values.daemon.metricsPort }}
  {{- range .Values.daemon.args }}
  - {{ . | quote }}
  {{- end }}
env:
  - name: POD_IP
    valueFrom:
      fieldRef:
        fieldPath: status.podIP
  - name: UCM_SOCKET
    value: {{ include "ucm.socket" . }}
  - name: UCM_JAVA_OPTS
    value: -Xmx{{ .Values.daemon.heapGiB }}g
  {{- with .Values.daemon.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - name: ucm-metrics
    containerPort: {{ .Values.daemon.metricsPort }}
startupProbe:
  exec:
    command: [/opt/ucm/bin/ucm, serve, status]
  periodSeconds: 2
  timeoutSeconds: 10
  failureThreshold: 60
livenessProbe:
  exec:
    command: [/opt/ucm/bin/ucm, serve, status]
  periodSeconds: 60
  timeoutSeconds: 30
resources:
  requests:
    cpu: {{ .Values.daemon.cpu | quote }}
    memory: {{ $memory }}
  limits:
    memory: {{ $memory }}
{{ include "ucm.container" . }}
volumeMounts:
  - name: store
    mountPath: {{ .Values.store.mountPath }}
{{- end }}

{{- define "ucm.yaml" -}}
{{- $keys := dict "store_pipeline" .Values.store.pipeline "storage_backends" .Values.store.mountPath -}}
{{- if .Values.store.cacheGiB }}{{ $_ := set $keys "cache_buffer_capacity_gb" .Values.store.cacheGiB }}{{ end -}}
{{- $connector := dict "ucm_connector_name" "UcmPipelineStore" "ucm_connector_config" (merge (deepCopy .Values.store.keys) $keys) -}}
{{- merge (dict "ucm_connectors" (list $connector)) .Values.store.settings | toYaml -}}
{{- end }}
