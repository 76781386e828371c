{{/* The name of everything: the release's, and "kuji" once in it. */}}
{{- define "kuji.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "kuji.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kuji.labels" -}}
{{ include "kuji.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "kuji.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* Every node of the cluster, as --peers takes them. */}}
{{- define "kuji.peers" -}}
{{- $full := include "kuji.fullname" . }}
{{- $peers := list }}
{{- range $i := until (int .Values.cluster.nodes) }}
{{- $peers = append $peers (printf "%s-%d=%s-%d.%s-peers.%s.svc" $full $i $full $i $full $.Release.Namespace) }}
{{- end }}
{{- join "," $peers }}
{{- end }}

{{/* How the kubelet asks a server. */}}
{{- define "kuji.scheme" -}}
{{- if .Values.tls.secret }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{/* Fails for values that make no server. */}}
{{- define "kuji.check" -}}
{{- if not .Values.keys.secret }}
{{- fail "keys.secret: expected the name of a Secret with a key file; make one with \"kuji keys new\"" }}
{{- end }}
{{- if and (not .Values.tls.secret) (not .Values.insecure) }}
{{- fail "tls.secret: expected the name of a Secret with a certificate, or insecure: true on a network that something else encrypts" }}
{{- end }}
{{- end }}
