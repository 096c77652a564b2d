-- How an object of Leafcast is, by the conditions that its status has (kstatus): Ready, Reconciling, Stalled.
local hs = { status = "Progressing", message = "Leafcast has not looked at it yet" }
if obj.status == nil or obj.status.conditions == nil then
  return hs
end
if obj.metadata.generation ~= nil and obj.status.observedGeneration ~= obj.metadata.generation then
  hs.message = "Leafcast has not looked at its newest generation yet"
  return hs
end
local found = {}
for _, condition in ipairs(obj.status.conditions) do
  found[condition.type] = condition
end
local ready, stalled = found.Ready, found.Stalled
if ready == nil then
  return hs
end
-- A person may be meant to take their time over these.
local suspended = { AwaitingApproval = true, Paused = true, RolloutPaused = true }
hs.message = ready.message
if ready.status == "True" then
  hs.status = "Healthy"
elseif stalled ~= nil and stalled.status == "True" then
  hs.status = suspended[stalled.reason] and "Suspended" or "Degraded"
elseif ready.reason == "Degraded" then
  hs.status = "Degraded"
end
return hs
