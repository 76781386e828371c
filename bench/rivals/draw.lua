-- KEYS: pool. ARGV: request id, player.
-- Returns the entry drawn, the same for a request id that comes again, and
-- false when everything is gone.
local answered = redis.call('GET', 'id:' .. ARGV[1])
if answered then
  return answered
end
local pool = KEYS[1]
local total = tonumber(redis.call('GET', pool .. ':total'))
if total == 0 then
  return false
end
local entry = redis.call('ZRANGEBYSCORE', pool .. ':sums', '(' .. math.random(0, total - 1), '+inf', 'LIMIT', 0, 1)[1]
if redis.call('HINCRBY', pool .. ':stock', entry, -1) == 0 then
  -- It has run out: the sums from it on shrink by its weight.
  local weight = tonumber(redis.call('HGET', pool .. ':weight', entry))
  local behind = redis.call('ZRANGEBYSCORE', pool .. ':sums', redis.call('ZSCORE', pool .. ':sums', entry), '+inf')
  for i, other in ipairs(behind) do
    redis.call('ZINCRBY', pool .. ':sums', -weight, other)
  end
  redis.call('ZREM', pool .. ':sums', entry)
  redis.call('DECRBY', pool .. ':total', weight)
end
redis.call('HINCRBY', 'player:' .. ARGV[2], 'item-' .. entry, 1)
redis.call('SET', 'id:' .. ARGV[1], entry, 'EX', 2592000)
redis.call('XADD', 'history', '*', 'id', ARGV[1], 'player', ARGV[2], 'entry', entry)
return entry
