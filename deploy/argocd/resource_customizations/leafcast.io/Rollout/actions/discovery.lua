-- What can be asked of a Rollout now, as `leafcast rollout` does.
local status = obj.status or {}
local phases = { Waiting = true, Progressing = true, Soaking = true, AwaitingApproval = true, Paused = true }
local under_way = (status.revision or 0) > 0 and phases[status.phase] == true
local paused = status.paused == true or status.phase == "Paused"
local former = status.history ~= nil and #status.history > 1
local actions = {}
actions["pause"] = { ["disabled"] = not under_way or paused }
actions["resume"] = { ["disabled"] = status.phase ~= "Held" and not (under_way and paused) }
actions["approve"] = { ["disabled"] = status.phase ~= "AwaitingApproval" }
actions["abort"] = { ["disabled"] = not under_way }
actions["undo"] = { ["disabled"] = not former }
return actions
