{{/* The workloads (a test compares them with the topology), each with its stage: the key in .Values.stages; the argument of
`harvest worker`; consumer group, topics that are read, tables, blobs, feed. The stages of a Broker are there for each Broker; its
register reads its sources: the archives of other Brokers, and `summaries` for those that the Gatherer gives. One with `stream = true`
has a worker for its stream. */}}
{{- define "harvest.topology" -}}
frontier: {stage: frontier, worker: frontier, group: frontier, inputs: [crawl], tables: true}
fetch: {stage: fetch, worker: fetch, group: fetch, inputs: [fetches], blobs: true}
essence: {stage: essence, worker: essence, group: essence, inputs: [objects], blobs: true}
catalog: {stage: catalog, worker: catalog, group: catalog, inputs: [made, annotations], tables: true}
feed: {stage: feed, worker: feed, group: feed, inputs: [summaries], feed: true}
{{- range $broker := prepend (keys (omit .Values.brokers "main") | sortAlpha) "main" }}
{{- $of := ternary "" (printf "-%s" $broker) (eq $broker "main") }}
{{- $at := ternary "" (printf ".%s" $broker) (eq $broker "main") }}
{{- $defined := index $.Values.brokers $broker | default dict }}
{{- $sources := list }}
{{- range $source := index $defined "from" | default (list "summaries") }}
{{- $name := trimPrefix "broker:" $source }}
{{- if not (hasPrefix "broker:" $source) }}
{{- $sources = append $sources "summaries" }}
{{- else if or (eq $name "main") (hasKey $.Values.brokers $name) }}
{{- $sources = append $sources (printf "broker.%s" $name) }}
{{- else }}
{{- fail (printf "brokers.%s.from: %s: no such Broker" $broker $source) }}
{{- end }}
{{- end }}
{{- $inputs := join ", " (concat (list (printf "views.%s" $broker)) (uniq $sources) (list (printf "copies.%s" $broker))) }}
register{{ $of }}: {stage: register, worker: register{{ $at }}, group: register.{{ $broker }}, inputs: [{{ $inputs }}], tables: true}
dedup{{ $of }}: {stage: dedup, worker: dedup{{ $at }}, group: dedup.{{ $broker }}, inputs: [holders.{{ $broker }}], tables: true}
index{{ $of }}: {stage: index, worker: index{{ $at }}, group: index.{{ $broker }}, inputs: [broker.{{ $broker }}]}
{{- if index $defined "stream" }}
stream-{{ $broker }}: {stage: stream, worker: stream.{{ $broker }}, group: stream.{{ $broker }}, inputs: [broker.{{ $broker }}], feed: true}
{{- end }}
{{- end }}
{{- end }}

{{- define "harvest.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "harvest.gateway" -}}
{{- include "harvest.fullname" . }}-gateway
{{- end }}

{{/* Names that a request's Host may have: those of the gateway's service, those of the ingress, and what is named besides. */}}
{{- define "harvest.gateway.hosts" -}}
{{- $service := include "harvest.gateway" . -}}
{{- $local := printf "%s.%s" $service .Release.Namespace -}}
{{- $names := list $service $local (printf "%s.svc" $local) (printf "%s.svc.cluster.local" $local) -}}
{{- if .Values.gateway.ingress.enabled }}{{- $names = concat $names .Values.gateway.ingress.hosts }}{{- end -}}
{{- concat $names .Values.gateway.hosts | uniq | join "," -}}
{{- end }}

{{- define "harvest.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "harvest.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "harvest.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "harvest.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{- end -}}
{{- end -}}
{{- end }}

{{/* The mounts of the secrets of Kafka and of OpenSearch, and of extraVolumes, with their volumes; nothing where there are none.
`definitions`: the ConfigMap of the Brokers, if it is not that of the release. */}}
{{- define "harvest.secrets.mount" -}}
{{- with .Values.kafka.security }}{{- if or .passwordSecret .caSecret .certificateSecret }}
- {name: kafka, mountPath: /etc/harvest/kafka, readOnly: true}
{{- end }}{{- end }}
{{- with .Values.index }}{{- if or .passwordSecret .caSecret }}
- {name: index, mountPath: /etc/harvest/index, readOnly: true}
{{- end }}{{- end }}
{{- if .Values.brokers }}
- {name: brokers, mountPath: /etc/harvest/brokers, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The mounts of the secrets of object storage, for the stages that read or write bodies, and their volumes. */}}
{{- define "harvest.blobs.mount" -}}
{{- with .Values.blobs }}{{- if and .url (or .existingSecret .caSecret) }}
- {name: blobs-login, mountPath: /etc/harvest/blobs, readOnly: true}
{{- end }}{{- end }}
{{- end }}

{{- define "harvest.blobs.volume" -}}
{{- with .Values.blobs }}{{- if and .url (or .existingSecret .caSecret) }}
- name: blobs-login
  projected:
    defaultMode: 0440
    sources:
      {{- if .existingSecret }}
      - secret: {name: {{ .existingSecret }}, items: [{key: {{ .secretKey }}, path: secret-key}]}
      {{- end }}
      {{- if .caSecret }}
      - secret: {name: {{ .caSecret }}, items: [{key: {{ .caKey }}, path: ca.pem}]}
      {{- end }}
{{- end }}{{- end }}
{{- end }}

{{- define "harvest.secrets.volume" -}}
{{- with .Values.kafka.security }}{{- if or .passwordSecret .caSecret .certificateSecret }}
- name: kafka
  projected:
    defaultMode: 0440
    sources:
      {{- with .passwordSecret }}
      - secret: {name: {{ . }}, items: [{key: {{ $.Values.kafka.security.passwordKey }}, path: password}]}
      {{- end }}
      {{- with .caSecret }}
      - secret: {name: {{ . }}, items: [{key: {{ $.Values.kafka.security.caKey }}, path: ca.pem}]}
      {{- end }}
      {{- if .certificateSecret }}
      - secret:
          name: {{ .certificateSecret }}
          items: [{key: {{ .certificateKey }}, path: certificate.pem}, {key: {{ .privateKey }}, path: key.pem}]
      {{- end }}
{{- end }}{{- end }}
{{- with .Values.index }}{{- if or .passwordSecret .caSecret }}
- name: index
  projected:
    defaultMode: 0440
    sources:
      {{- with .passwordSecret }}
      - secret: {name: {{ . }}, items: [{key: {{ $.Values.index.passwordKey }}, path: password}]}
      {{- end }}
      {{- with .caSecret }}
      - secret: {name: {{ . }}, items: [{key: {{ $.Values.index.caKey }}, path: ca.pem}]}
      {{- end }}
{{- end }}{{- end }}
{{- if .Values.brokers }}
- name: brokers
  configMap: {name: {{ default (include "harvest.brokers.name" .) .definitions }}}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The definitions of Brokers, a file each; the name of their ConfigMap changes with them, so that workers start anew. */}}
{{- define "harvest.brokers.files" -}}
{{- range $name, $broker := .Values.brokers }}
{{ $name }}.toml: |
  query = {{ $broker.query | default "" | toJson }}
  {{- with $broker.ttl }}
  ttl = {{ if kindIs "string" . }}{{ toJson . }}{{ else }}{{ int64 . }}{{ end }}
  {{- end }}
  {{- range $key := list "title" "from" "languages" "facets" "stream" }}
  {{- with index $broker $key }}
  {{ $key }} = {{ toJson . }}
  {{- end }}
  {{- end }}
  {{- range $table := list "rank" "fallback" }}
  {{- with index $broker $table }}
  [{{ $table }}]
  {{- range $key, $value := . }}
  {{ $key }} = {{ toJson $value }}
  {{- end }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "harvest.brokers.name" -}}
{{- include "harvest.fullname" . }}-brokers-{{ include "harvest.brokers.files" . | sha256sum | trunc 8 -}}
{{- end }}

{{/* The settings of a stage or of `gateway`, as the environment has them; `stage` is empty for the commands that are neither. */}}
{{- define "harvest.env" -}}
{{- $v := .root.Values -}}
{{- $env := dict
  "HARVEST_DATA" "/var/lib/harvest"
  "HARVEST_GATHERER" $v.gatherer
  "HARVEST_KAFKA_BROKERS" (join "," $v.kafka.brokers)
  "HARVEST_KAFKA_PREFIX" $v.kafka.prefix
  "HARVEST_KAFKA_PARTITIONS" $v.kafka.partitions
  "HARVEST_KAFKA_REPLICATION" $v.kafka.replication
  "HARVEST_KAFKA_REGISTRY" $v.kafka.registry
  "HARVEST_KAFKA_REGISTER" $v.kafka.register
  "HARVEST_INDEX_NAME" $v.index.name
  "HARVEST_LOG_FORMAT" $v.log.format
  "HARVEST_LOG_TRACE" $v.log.trace
-}}
{{- with $v.kafka.security -}}
{{- if ne .protocol "PLAINTEXT" -}}{{- $_ := set $env "HARVEST_KAFKA_SECURITY_PROTOCOL" .protocol -}}{{- end -}}
{{- if .user -}}
{{- $_ := set $env "HARVEST_KAFKA_SECURITY_MECHANISM" .mechanism -}}
{{- $_ := set $env "HARVEST_KAFKA_SECURITY_USER" .user -}}
{{- end -}}
{{- if .passwordSecret -}}{{- $_ := set $env "HARVEST_KAFKA_SECURITY_PASSWORD_FILE" "/etc/harvest/kafka/password" -}}{{- end -}}
{{- if .caSecret -}}{{- $_ := set $env "HARVEST_KAFKA_SECURITY_CA" "/etc/harvest/kafka/ca.pem" -}}{{- end -}}
{{- if .certificateSecret -}}
{{- $_ := set $env "HARVEST_KAFKA_SECURITY_CERTIFICATE" "/etc/harvest/kafka/certificate.pem" -}}
{{- $_ := set $env "HARVEST_KAFKA_SECURITY_KEY" "/etc/harvest/kafka/key.pem" -}}
{{- end -}}
{{- end -}}
{{- if $v.stages.feed.enabled -}}{{- $_ := set $env "HARVEST_FEED_ENABLED" "true" -}}{{- end -}}
{{- if $v.brokers -}}{{- $_ := set $env "HARVEST_BROKERS" "/etc/harvest/brokers" -}}{{- end -}}
{{- if eq .stage "gateway" -}}
{{- $env = merge $env (dict "HARVEST_SERVE_HOST" "0.0.0.0" "HARVEST_SERVE_PORT" $v.gateway.port "HARVEST_SERVE_PUBLIC" $v.gateway.public "HARVEST_SERVE_HOSTS" (include "harvest.gateway.hosts" .root) "HARVEST_SERVE_ROOT_PATH" $v.gateway.rootPath "HARVEST_SERVE_PROXIES" (join "," $v.gateway.proxies)) -}}
{{- else if and .stage (ne .stage "bodies") -}}
{{- $env = merge $env (dict "HARVEST_WORKER_HOST" "0.0.0.0" "HARVEST_WORKER_PORT" $v.worker.port "HARVEST_WORKER_STALL" $v.worker.stall "HARVEST_WORKER_SESSION" $v.worker.session) -}}
{{- end -}}
{{- if has .stage (list "index" "gateway" "") -}}
{{- with $v.index -}}
{{- if .user -}}{{- $_ := set $env "HARVEST_INDEX_USER" .user -}}{{- end -}}
{{- if .passwordSecret -}}{{- $_ := set $env "HARVEST_INDEX_PASSWORD_FILE" "/etc/harvest/index/password" -}}{{- end -}}
{{- if .caSecret -}}{{- $_ := set $env "HARVEST_INDEX_CA" "/etc/harvest/index/ca.pem" -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $v.blobs.url (has .stage (list "fetch" "essence" "bodies")) -}}
{{- with $v.blobs -}}
{{- $env = merge $env (dict "HARVEST_BLOBS_URL" .url "HARVEST_BLOBS_ENDPOINT" .endpoint "HARVEST_BLOBS_REGION" .region "HARVEST_BLOBS_CACHE" (int64 .cache)) -}}
{{- if .existingSecret -}}{{- $_ := set $env "HARVEST_BLOBS_SECRET_KEY_FILE" "/etc/harvest/blobs/secret-key" -}}{{- end -}}
{{- if .caSecret -}}{{- $_ := set $env "HARVEST_BLOBS_CA" "/etc/harvest/blobs/ca.pem" -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq .stage "fetch" -}}{{- $env = merge $env (dict "HARVEST_FETCH_SPOOL" "/var/lib/harvest") -}}{{- end -}}
{{- if eq .stage "essence" -}}{{- $env = merge $env (dict "HARVEST_CHILDREN" $v.stages.essence.children) -}}{{- end -}}
{{- if not $v.index.existingSecret -}}{{- $env = merge $env (dict "HARVEST_INDEX_URL" $v.index.url) -}}{{- end -}}
{{- range $name, $value := merge (deepCopy $v.settings) $env }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- if and $v.index.existingSecret (has .stage (list "index" "gateway" "")) }}
- name: HARVEST_INDEX_URL
  valueFrom:
    secretKeyRef:
      name: {{ $v.index.existingSecret }}
      key: url
{{- end }}
{{- if and $v.blobs.url $v.blobs.existingSecret (has .stage (list "fetch" "essence" "bodies")) }}
- name: HARVEST_BLOBS_ACCESS_KEY
  valueFrom:
    secretKeyRef:
      name: {{ $v.blobs.existingSecret }}
      key: {{ $v.blobs.accessKey }}
{{- end }}
{{- if and (eq .stage "gateway") (or $v.gateway.token $v.gateway.existingSecret) }}
- name: HARVEST_SERVE_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ default (include "harvest.gateway" .root) $v.gateway.existingSecret }}
      key: token
{{- end }}
{{- with $v.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "harvest.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "harvest.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{/* Annotations of pods: by which Prometheus finds them, where it goes by annotations, and those of the values. */}}
{{- define "harvest.annotations" -}}
{{- $found := deepCopy .root.Values.podAnnotations -}}
{{- if .root.Values.monitoring.annotations -}}
{{- $found = merge $found (dict "prometheus.io/scrape" "true" "prometheus.io/path" "/metrics" "prometheus.io/port" (.port | toString)) -}}
{{- end -}}
{{- with $found }}{{ toYaml . }}{{- end -}}
{{- end }}

{{/* The egress to what a network policy names: peers, and ports if they are known. */}}
{{- define "harvest.index.egress" -}}
- to: {{- toYaml .Values.networkPolicy.indexTo | nindent 4 }}
  {{- if .Values.networkPolicy.indexPorts }}
  ports:
    {{- range .Values.networkPolicy.indexPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- else if and .Values.index.url (not .Values.index.existingSecret) }}
  ports:
    - {protocol: TCP, port: {{ include "harvest.port" .Values.index.url }}}
  {{- end }}
{{- end }}

{{/* What all pods share: nobody's rights, and no variables of services, which begin as our settings do. `near`: an affinity, where
the values have none of its kind. */}}
{{- define "harvest.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with merge (deepCopy .Values.affinity) (default dict .near) }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "harvest.container" -}}
image: {{ include "harvest.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- with .Values.envFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The workloads that write streams (`feed`, `stream-NAME`), as `names: [...]`; `running`: those with a worker. */}}
{{- define "harvest.feeds" -}}
{{- $root := . -}}
{{- $names := list -}}
{{- $running := list -}}
{{- range $workload, $is := include "harvest.topology" . | fromYaml -}}
{{- $v := index $root.Values.stages $is.stage -}}
{{- if and $is.feed $v.enabled -}}
{{- $names = append $names $workload -}}
{{- if $v.replicas -}}{{- $running = append $running $workload -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- dict "names" $names "running" $running | toYaml -}}
{{- end }}

{{/* The volume of all streams, which their workers write and the gateway reads. A reader writes too: it locks by a file beside each. */}}
{{- define "harvest.feed.volume" -}}
- name: feed
  persistentVolumeClaim:
    claimName: {{ default (printf "%s-feed" (include "harvest.fullname" .)) .Values.stages.feed.existingClaim }}
{{- end }}

{{- define "harvest.feed.mount" -}}
- {name: feed, mountPath: /var/lib/harvest/feed}
{{- end }}

{{/* Affinity to the node of the pods of a component (`to`): needed, or preferred where that component may not be there yet. */}}
{{- define "harvest.near" -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" (merge (dict "app.kubernetes.io/component" .to) (include "harvest.selector" .root | fromYaml))) -}}
podAffinity:
{{- if .needed }}
  requiredDuringSchedulingIgnoredDuringExecution:
    - {{- toYaml $term | nindent 6 }}
{{- else }}
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm: {{- toYaml $term | nindent 8 }}
{{- end }}
{{- end }}

{{/* Ports of HOST:PORT, or of a URL. */}}
{{- define "harvest.port" -}}
{{- $url := urlParse . -}}
{{- $port := regexFind ":[0-9]+$" $url.host -}}
{{- if $port -}}{{ trimPrefix ":" $port }}{{- else -}}{{ ternary "443" "80" (eq $url.scheme "https") }}{{- end -}}
{{- end }}

{{/* Affinity of a worker that writes a stream: all need the node of the first one, with which they share the volume, and that one
prefers the node of the gateway, whose pods need its node. */}}
{{- define "harvest.near.feed" -}}
{{- $first := first (include "harvest.feeds" .root | fromYaml).running -}}
{{- if and $first (ne $first .workload) }}
{{- include "harvest.near" (dict "root" .root "to" $first "needed" true) }}
{{- else if .root.Values.gateway.enabled }}
{{- include "harvest.near" (dict "root" .root "to" "gateway" "needed" false) }}
{{- end }}
{{- end }}
