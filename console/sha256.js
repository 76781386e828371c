// SHA-256 (FIPS 180-4). Browsers have it only on pages over HTTPS and on loopback; this one works everywhere,
// and is short enough to be read by whoever checks a proof with it.

const primes = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
const K = primes.map((p) => fraction(Math.cbrt(p)));
const START = primes.slice(0, 8).map((p) => fraction(Math.sqrt(p)));

// sha256 returns the 32 bytes of the hash of a Uint8Array.
export function sha256(data) {
  const blocks = (data.length + 8 >> 6) + 1;
  const padded = new Uint8Array(blocks * 64);
  padded.set(data);
  padded[data.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(data.length) * 8n);
  const h = Int32Array.from(START);
  const w = new Int32Array(64);
  const turn = (x, n) => (x >>> n) | (x << (32 - n));
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(at + i * 4);
    for (let i = 16; i < 64; i++) {
      const s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >>> 3);
      const s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    let [a, b, c, d, e, f, g, last] = h;
    for (let i = 0; i < 64; i++) {
      const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
      const t1 = (last + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
      const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      last = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
    }
    [a, b, c, d, e, f, g, last].forEach((v, i) => { h[i] = (h[i] + v) | 0; });
  }
  const out = new DataView(new ArrayBuffer(32));
  h.forEach((v, i) => out.setInt32(i * 4, v));
  return new Uint8Array(out.buffer);
}

export const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

// fromBase64 returns the bytes of standard or URL-safe base64.
export const fromBase64 = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));

// commitmentOf returns the commitment to an epoch's seed: docs/internals/formats/event.md.
export function commitmentOf(realm, epoch, seed) {
  const name = new TextEncoder().encode(realm);
  const domain = new TextEncoder().encode("kuji/v1/rng-commitment");
  const bytes = new Uint8Array(domain.length + 1 + name.length + 1 + 8 + seed.length);
  bytes.set(domain);
  bytes.set(name, domain.length + 1);
  new DataView(bytes.buffer).setBigUint64(domain.length + name.length + 2, BigInt(epoch), true);
  bytes.set(seed, domain.length + name.length + 10);
  return sha256(bytes);
}
