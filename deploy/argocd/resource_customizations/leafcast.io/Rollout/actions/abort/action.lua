-- Asks the Rollout to give everyone what they had before: Leafcast handles each request once, and tells them apart by their id.
local request = '{"id":"argocd-' .. (obj.metadata.resourceVersion or "0") .. '","action":"abort"}'
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["leafcast.io/rollout-request"] = request
return obj
