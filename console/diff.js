// The difference of two texts, line by line: the shortest edit by Myers (1986), in linear space of edits.

// diff returns [{ sign: " ", "+" or "-", text, left, right }], with line numbers from 1. Texts that differ in
// more than `most` lines are given as one taken out and one put in.
export function diff(a, b, most = 4000) {
  const left = a.split("\n");
  const right = b.split("\n");
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  let endLeft = left.length;
  let endRight = right.length;
  while (endLeft > start && endRight > start && left[endLeft - 1] === right[endRight - 1]) { endLeft--; endRight--; }
  const lines = [];
  const same = (i, j) => lines.push({ sign: " ", text: left[i], left: i + 1, right: j + 1 });
  for (let i = 0; i < start; i++) same(i, i);
  for (const [sign, i, j] of edits(left, right, start, endLeft, start, endRight, most)) {
    if (sign === " ") same(i, j);
    else if (sign === "-") lines.push({ sign, text: left[i], left: i + 1 });
    else lines.push({ sign, text: right[j], right: j + 1 });
  }
  for (let i = endLeft, j = endRight; i < left.length; i++, j++) same(i, j);
  return lines;
}

function edits(left, right, x0, x1, y0, y1, most) {
  const n = x1 - x0;
  const m = y1 - y0;
  const trace = [];
  const v = new Map([[1, 0]]);
  for (let d = 0; d <= Math.min(n + m, most); d++) {
    trace.push(new Map(v));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1)) ? v.get(k + 1) ?? 0 : (v.get(k - 1) ?? 0) + 1;
      while (x < n && x - k < m && left[x0 + x] === right[y0 + x - k]) x++;
      v.set(k, x);
      if (x >= n && x - k >= m) return back(trace, n, m, x0, y0);
    }
  }
  return [...Array(n).keys()].map((i) => ["-", x0 + i, 0]).concat([...Array(m).keys()].map((j) => ["+", 0, y0 + j]));
}

// back follows the edits from the end to the beginning.
function back(trace, n, m, x0, y0) {
  const out = [];
  let x = n;
  let y = m;
  for (let d = trace.length - 1; d >= 0; d--) {
    const v = trace[d];
    const k = x - y;
    const down = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1));
    const fromX = d === 0 ? 0 : down ? v.get(k + 1) ?? 0 : v.get(k - 1) ?? 0;
    const fromY = d === 0 ? 0 : fromX - (down ? k + 1 : k - 1);
    const afterX = fromX + (d > 0 && !down ? 1 : 0); // where the edit led, before lines that are the same
    const afterY = fromY + (d > 0 && down ? 1 : 0);
    while (x > afterX && y > afterY) out.push([" ", x0 + --x, y0 + --y]);
    if (d === 0) break;
    if (down) out.push(["+", 0, y0 + --y]);
    else out.push(["-", x0 + --x, 0]);
  }
  return out.reverse();
}

// folded leaves out what is the same, but for some lines around changes: an entry with skipped says how many.
export function folded(lines, around = 3) {
  const keep = new Set();
  lines.forEach((l, i) => { if (l.sign !== " ") for (let j = i - around; j <= i + around; j++) keep.add(j); });
  const out = [];
  let skipped = 0;
  lines.forEach((l, i) => {
    if (keep.has(i)) {
      if (skipped) out.push({ skipped });
      skipped = 0;
      out.push(l);
    } else skipped++;
  });
  if (skipped) out.push({ skipped });
  return out;
}
