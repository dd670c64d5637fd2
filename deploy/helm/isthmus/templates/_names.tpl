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

{{/*
The configuration as Isthmus reads it: the user's, with what the chart decides.
An output is on if it is named with anything but null.
*/}}
{{- define "isthmus.config" -}}
{{- $c := deepCopy .Values.config -}}
{{- $_ := set $c "admin" (merge (dict) (default dict $c.admin) (dict "listen" ":8080")) -}}
{{- if .Values.dataDir.enabled -}}
{{- $_ := set $c "store" (merge (dict) (default dict $c.store) (dict "dataDir" "/var/lib/isthmus")) -}}
{{- end -}}
{{- $outputs := dict -}}
{{- range $kind, $settings := default dict $c.outputs -}}
{{- if not (kindIs "invalid" $settings) -}}
{{- $_ := set $outputs $kind $settings -}}
{{- end -}}
{{- end -}}
{{- if not $c.outputs -}}
{{- $_ := set $outputs "istio" dict -}}
{{- else if not $outputs -}}
{{- fail "config.outputs takes every output out by null; name one, such as xds: {tls: {certFile: /tls/tls.crt, keyFile: /tls/tls.key}}" -}}
{{- end -}}
{{- if hasKey $outputs "istio" -}}
{{- $election := merge (dict) (default dict $outputs.istio.leaderElection) (dict "namespace" .Release.Namespace "name" (include "isthmus.name" .)) -}}
{{- $_ := set $outputs "istio" (merge (dict "leaderElection" $election) $outputs.istio) -}}
{{- end -}}
{{- if hasKey $outputs "xds" -}}
{{- $_ := set $outputs "xds" (merge (dict) $outputs.xds (dict "listen" ":15010")) -}}
{{- if not (or $outputs.xds.tls $outputs.xds.insecure (regexMatch "^(unix:|127\\.|localhost:|\\[::1\\])" $outputs.xds.listen)) -}}
{{- fail (printf "config.outputs.xds listens on %q in plaintext; set tls, such as {certFile: /tls/tls.crt, keyFile: /tls/tls.key}, or insecure: true if the network is trusted" $outputs.xds.listen) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $c "outputs" $outputs -}}
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
{{- with (fromYaml (include "isthmus.config" .)).outputs.xds -}}
{{- if not (hasPrefix "unix:" .listen) -}}
{{ regexFind "[0-9]+$" .listen }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The port that sinks of MCP connect to; empty without one. */}}
{{- define "isthmus.mcpPort" -}}
{{- with (fromYaml (include "isthmus.config" .)).outputs.mcp -}}
{{- if and .listen (not (hasPrefix "unix:" .listen)) -}}
{{ regexFind "[0-9]+$" .listen }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The port that readers of records connect to; empty without one. */}}
{{- define "isthmus.watchPort" -}}
{{- with (fromYaml (include "isthmus.config" .)).outputs.watch -}}
{{- if and .listen (not (hasPrefix "unix:" .listen)) -}}
{{ regexFind "[0-9]+$" .listen }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The rules that a source of kind kubernetes needs beside those of the core group. */}}
{{- define "isthmus.reads" }}
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
{{- if .istio }}
- apiGroups: [networking.istio.io]
  resources: [serviceentries, workloadentries, workloadgroups, sidecars]
  verbs: [list, watch]
{{- end }}
{{- if .smi }}
- apiGroups: [split.smi-spec.io]
  resources: [trafficsplits]
  verbs: [list, watch]
{{- end }}
{{- with .carry }}
- apiGroups: [networking.istio.io, security.istio.io, telemetry.istio.io, extensions.istio.io]
  resources: {{ keys . | sortAlpha | toJson }}
  verbs: [list, watch]
{{- end }}
{{- end }}

{{/* Whether Isthmus speaks with the API server of its own cluster as its service account. */}}
{{- define "isthmus.needsToken" -}}
{{- $c := fromYaml (include "isthmus.config" .) -}}
{{- $needs := hasKey $c.outputs "istio" -}}
{{- range $c.sources -}}
{{- $of := dict -}}
{{- if hasKey . "kubernetes" -}}{{- $of = set $of "is" (default dict .kubernetes) -}}{{- end -}}
{{- if and (kindIs "map" .azure) (hasKey .azure "kubernetes") -}}{{- $of = set $of "is" (default dict .azure.kubernetes) -}}{{- end -}}
{{- if and (hasKey $of "is") (not (or $of.is.kubeconfig $of.is.context)) -}}{{- $needs = true -}}{{- end -}}
{{- end -}}
{{ $needs }}
{{- end -}}

{{/* A digest goes before the tag, which can be moved. */}}
{{- define "isthmus.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}
