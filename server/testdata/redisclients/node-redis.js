// node node-redis.js LIBRARY URL ID: a draw and a group, with the client's own settings.
const [lib, url, id] = process.argv.slice(2);
const c = require(lib).createClient({ url });
c.on('error', (err) => { console.log(err.message); process.exit(1); });
(async () => {
  const show = (what, reply) => console.log(what, JSON.stringify(reply));
  await c.connect();
  show('draw', await c.sendCommand(['DRAW', 'ann', 'free', 'ID', id]));
  show('group', await c.multi().addCommand(['GRANT', 'ann', 'gem', '1', 'ID', id + '-group']).addCommand(['DRAW', 'ann', 'free']).exec());
  await c.close();
})().catch((err) => { console.log(err); process.exit(1); });
