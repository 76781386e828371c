package history

import "regexp"

// views are what people ask with SQL of the details of events: what quests and ranks gave, what was beyond a cap, and
// what was collected. Members of groups are in them too. A view has nothing of its own: no checksum, no row that could be
// missing. EACH is each element of a list in a JSON text, VIEW how a database makes or replaces one.
const views = `
VIEW claims AS
SELECT e.seq AS seq, COALESCE(c.value->>'player', p.name) AS player, c.value->>'quest' AS quest, CAST(c.value->>'tier' AS INT) AS tier,
	c.value->>'counter' AS counter, CAST(c.value->>'rank' AS INT) AS rank, CASE WHEN c.value->>'missed' IS NULL THEN 0 ELSE 1 END AS missed, c.value->>'items' AS items
FROM events e LEFT JOIN players p ON p.id = e.player, EACH(e.detail claims) c
UNION ALL
SELECT e.seq, COALESCE(c.value->>'player', m.value->>'player'), c.value->>'quest', CAST(c.value->>'tier' AS INT),
	c.value->>'counter', CAST(c.value->>'rank' AS INT), CASE WHEN c.value->>'missed' IS NULL THEN 0 ELSE 1 END, c.value->>'items'
FROM events e, EACH(e.detail members) m, EACH(m.value claims) c;
VIEW beyond AS
SELECT e.seq AS seq, COALESCE(b.value->>'player', p.name) AS player, b.value->>'item' AS item,
	CAST(b.value->>'quantity' AS INT) AS quantity, b.value->>'how' AS how
FROM events e LEFT JOIN players p ON p.id = e.player, EACH(e.detail beyond) b
UNION ALL
SELECT e.seq, COALESCE(b.value->>'player', m.value->>'to', m.value->>'player'), b.value->>'item', CAST(b.value->>'quantity' AS INT), b.value->>'how'
FROM events e, EACH(e.detail members) m, EACH(m.value beyond) b;
VIEW collected AS
SELECT e.seq AS seq, p.name AS player, s.value->>'item' AS item, CAST(s.value->>'quantity' AS INT) AS quantity
FROM events e JOIN players p ON p.id = e.player, EACH(e.detail items) s WHERE e.kind = 'collect'`

// roundViews are what people ask of rounds: who joined which one, and who won what. DOC is a JSON text as JSON.
const roundViews = `
VIEW joins AS
SELECT e.seq AS seq, p.name AS player, DOC(e.detail)->'round'->>'round' AS round, CAST(DOC(e.detail)->'round'->>'number' AS INT) AS number,
	COALESCE(CAST(DOC(e.detail)->>'count' AS INT), 1) AS tickets, DOC(e.detail)->>'items' AS stake
FROM events e JOIN players p ON p.id = e.player
WHERE e.kind IN ('join', 'open_round') AND e.status = 'ok' AND CAST(DOC(e.detail)->'round'->>'entrants' AS INT) > 0;
VIEW wins AS
SELECT e.seq AS seq, c.value->>'player' AS player, DOC(e.detail)->'round'->>'round' AS round, CAST(DOC(e.detail)->'round'->>'number' AS INT) AS number,
	CAST(c.value->>'place' AS INT) AS place, CAST(c.value->>'value' AS INT) AS value, CASE WHEN c.value->>'missed' IS NULL THEN 0 ELSE 1 END AS missed,
	c.value->>'items' AS items
FROM events e, EACH(e.detail claims) c WHERE c.value->>'place' IS NOT NULL`

// holdViews are what people ask of holds: what is held of whom, and how that ended.
const holdViews = `
VIEW held AS
SELECT e.seq AS seq, DOC(e.detail)->'hold'->>'id' AS hold, h.value->>'player' AS player, h.value->>'to' AS receiver, h.value->>'kind' AS kind,
	CASE WHEN DOC(e.detail)->'hold'->>'refund' IS NULL THEN 0 ELSE 1 END AS refund, CAST(DOC(e.detail)->'hold'->>'until' AS INT) AS until,
	h.value->>'takes' AS takes, h.value->>'gives' AS gives, CAST(h.value->>'draws' AS INT) AS draws
FROM events e, EACH(DOC(e.detail)->'hold' parts) h WHERE e.kind = 'hold';
VIEW freed AS
SELECT e.seq AS seq, f.value->>'hold' AS hold, f.value->>'player' AS player,
	CASE e.kind WHEN 'confirm' THEN 'confirmed' WHEN 'cancel' THEN 'cancelled' ELSE 'expired' END AS state
FROM events e, EACH(e.detail freed) f`

const allViews = views + ";" + roundViews + ";" + holdViews

var (
	eachWord = regexp.MustCompile(`EACH\((\S+) (\w+)\)`)
	docWord  = regexp.MustCompile(`DOC\((\S+?)\)`)
)
