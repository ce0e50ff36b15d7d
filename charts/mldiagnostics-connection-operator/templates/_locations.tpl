{{/*
CEL of the admission policies for one storageLocation, as mldiagnostics_api.captures.location and .policy decide: the policy defines
the variable `location` (empty: not set) before these variables, and `writers`, the namespaces that must allow it, after them.
*/}}
{{- define "mldiag.locationVariables" -}}
- name: allowedStorage
  expression: {{ include "mldiag.prefixes" . | quote }}
# The normalized location: one "/" between segments and one at the end; a path in the pod has no scheme.
- name: root
  expression: >-
    ['gs://', 's3://', 'az://', 'abfss://', 'volume:///'].filter(root, variables.location.startsWith(root))[?0].orValue('/')
- name: path
  expression: >-
    variables.location.substring(variables.root != '/' ? variables.root.size() : variables.location.startsWith('pod:///')
    ? 7 : 0)
- name: segments
  expression: variables.path.split('/').filter(segment, segment != '' && segment != '.')
- name: directory
  expression: variables.root + variables.segments.map(segment, segment + '/').join('')
{{- end }}

{{- define "mldiag.refusingVariable" -}}
- name: refusing
  expression: >-
    variables.location == '' ? [] : variables.writers.filter(writer,
    !(variables.allowedStorage[?'*'].orValue([]) + variables.allowedStorage[?writer].orValue([]))
    .exists(prefix, variables.directory.startsWith(prefix.replace('{namespace}', writer))))
{{- end }}

{{/* One bucket of any scheme. No host but Azure's own, because it gets the operator's token. */}}
{{- define "mldiag.bucketPattern" -}}
gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]|az://[a-z0-9][a-z0-9-]{1,61}[a-z0-9]|abfss://[a-z0-9][a-z0-9-]{1,61}[a-z0-9]@[a-z0-9]{3,24}[.]dfs[.]core[.]windows[.]net
{{- end }}

{{/* Rules for the storageLocation; the argument is its path in the object, for messages. */}}
{{- define "mldiag.locationRules" -}}
- expression: >-
    variables.location == ''
    || (variables.location.matches('^(({{ include "mldiag.bucketPattern" $ }})(/|$)|volume:///|pod:///|/)[A-Za-z0-9/._~=+@:,-]*$')
    && variables.segments.all(segment, segment.size() <= 255))
  messageExpression: >-
    "{{ . }}: " + strings.quote(variables.location) + " is not a location; write
    gs://<bucket>/<path>, s3://<bucket>/<path>, az://<container>/<path>,
    abfss://<container>@<account>.dfs.core.windows.net/<path>, volume:///<path> or an absolute path in the pod, of letters, digits and ._~=+@:,-,
    with at most 255 characters between two '/'"
- expression: "!variables.path.contains('://')"
  messageExpression: >-
    "{{ . }}: '" + variables.location + "' has '://' in its path; write one location, such as
    s3://<bucket>/<path>"
- expression: "!variables.segments.exists(segment, segment == '..')"
  messageExpression: >-
    "{{ . }}: '" + variables.location + "' contains '..'; write the path without it"
- expression: variables.refusing.size() == 0
  reason: Forbidden
  messageExpression: >-
    "{{ . }}: '" + variables.location + "' is not below a location that is allowed for namespace '"
    + variables.refusing[0] + "' (" + (variables.allowedStorage[?'*'].orValue([])
    + variables.allowedStorage[?variables.refusing[0]].orValue([])).join(', ').replace('{namespace}', variables.refusing[0])
    + "); use one of these, or ask the administrator to add it to policy.allowedStorage"
    + (variables.root.endsWith('://') ? ', or to set policy.strictTenancy=false, which allows every bucket' : '')
{{- end }}
