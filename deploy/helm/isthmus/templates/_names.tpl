{{- define "isthmus.name" -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "isthmus.selector" -}}
app.kubernetes.io/name: isthmus
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Objects of the chart are Helm's; those that Isthmus writes are isthmus's own. */}}
{{- define "isthmus.labels" -}}
{{ include "isthmus.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "isthmus.account" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "isthmus.name" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* The configuration as Isthmus reads it: the user's, with what the chart decides. */}}
{{- define "isthmus.config" -}}
{{- $c := deepCopy .Values.config -}}
{{- $_ := set $c "admin" (merge (dict) (default dict $c.admin) (dict "listen" ":8080")) -}}
{{- if .Values.dataDir.enabled -}}
{{- $_ := set $c "store" (merge (dict) (default dict $c.store) (dict "dataDir" "/var/lib/isthmus")) -}}
{{- end -}}
{{- if hasKey $c.outputs "istio" -}}
{{- $istio := default dict $c.outputs.istio -}}
{{- $election := merge (dict) (default dict $istio.leaderElection) (dict "namespace" .Release.Namespace "name" (include "isthmus.name" .)) -}}
{{- $_ := set $istio "leaderElection" $election -}}
{{- $_ := set $c.outputs "istio" $istio -}}
{{- end -}}
{{ toYaml $c }}
{{- end -}}

{{- define "isthmus.adminPort" -}}
{{- $c := fromYaml (include "isthmus.config" .) -}}
{{ regexFind "[0-9]+$" $c.admin.listen }}
{{- end -}}

{{/* How probes and commands ask the admin listener. */}}
{{- define "isthmus.adminScheme" -}}
{{- $c := fromYaml (include "isthmus.config" .) -}}
{{- if ($c.admin.tls | default dict).certFile -}}https{{- else -}}http{{- end -}}
{{- end -}}

{{/* The port that proxies connect to; empty without one. */}}
{{- define "isthmus.xdsPort" -}}
{{- with .Values.config.outputs.xds -}}
{{- if not (hasPrefix "unix:" .listen) -}}
{{ regexFind "[0-9]+$" .listen }}
{{- end -}}
{{- end -}}
{{- end -}}
