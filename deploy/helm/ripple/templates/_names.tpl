{{/* What all objects carry. */}}
{{- define "ripple.labels" -}}
app: ripple
component: {{ . }}
{{- end }}

{{/* What no container may do. */}}
{{- define "ripple.container" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "ripple.pod" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* What coordinators and workers know alike. */}}
{{- define "ripple.environment" -}}
- name: RIPPLE_CONFIG
  value: /etc/ripple/config/ripple.sexp
- name: RIPPLE_STORE
  valueFrom:
    configMapKeyRef: {name: ripple-config, key: checkpoint_bucket}
- name: RIPPLE_S3_ENDPOINT
  valueFrom:
    configMapKeyRef: {name: ripple-config, key: s3_endpoint}
- name: AWS_REGION
  valueFrom:
    configMapKeyRef: {name: ripple-config, key: s3_region}
{{ include "ripple.tls" . }}
{{- end }}

{{/* Who a process is to others. */}}
{{- define "ripple.tls" -}}
- name: RIPPLE_TLS_CERTIFICATE
  value: /etc/ripple/tls/tls.crt
- name: RIPPLE_TLS_KEY
  value: /etc/ripple/tls/tls.key
- name: RIPPLE_TLS_AUTHORITY
  value: /etc/ripple/tls/ca.crt
# Kubelets and Prometheus have no certificate.
- name: RIPPLE_PAGES_WITHOUT_TLS
  value: "true"
{{- end }}
