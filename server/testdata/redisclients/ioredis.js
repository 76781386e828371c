// node ioredis.js LIBRARY URL ID: a draw, a pipeline and a group, with the client's own settings.
const [lib, url, id] = process.argv.slice(2);
const Redis = require(lib);
const c = new Redis(url);
c.on('error', (err) => { console.log(err.message); process.exit(1); });
(async () => {
  const show = (what, reply) => console.log(what, JSON.stringify(reply));
  show('draw', await c.call('DRAW', 'ann', 'free', 'ID', id));
  show('pipeline', await c.pipeline().call('GRANT', 'ann', 'gem', 1, 'ID', id + '-grant').call('PLAYER', 'ann').exec());
  show('group', await c.multi().call('GRANT', 'ann', 'gem', 1, 'ID', id + '-group').call('DRAW', 'ann', 'free').exec());
  await c.quit();
})().catch((err) => { console.log(err); process.exit(1); });
