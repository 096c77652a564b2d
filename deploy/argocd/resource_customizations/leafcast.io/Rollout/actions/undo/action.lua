-- Asks the Rollout to go back to the revision before: Leafcast handles each request once, and tells them apart by their id.
local request = '{"id":"argocd-' .. (obj.metadata.resourceVersion or "0") .. '","action":"undo"}'
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["leafcast.io/rollout-request"] = request
return obj
