// Plots: small ones drawn as paths, large ones by uPlot, which is loaded when the first one is shown.
import { html, useEffect, useRef } from "./dom.js";
import { tick } from "./i18n.js";

// Spark is the course of a number, without axes; the label says it in words.
export function Spark({ values, label }) {
  const w = 120;
  const h = 36;
  if (values.length < 2) return html`<svg class="spark" viewBox="0 0 120 36" role="img" aria-label=${label}></svg>`;
  const most = Math.max(...values, 1e-9);
  const points = values.map((v, i) => `${((i / (values.length - 1)) * w).toFixed(1)},${(h - 2 - (v / most) * (h - 5)).toFixed(1)}`);
  return html`<svg class="spark" viewBox="0 0 120 36" preserveAspectRatio="none" role="img" aria-label=${label}>
    <path d=${`M0,${h} L${points.join(" L")} L${w},${h} Z`} fill="currentColor" opacity="0.14" />
    <path d=${`M${points.join(" L")}`} fill="none" stroke="currentColor" stroke-width="1.5" vector-effect="non-scaling-stroke" /></svg>`;
}

let loading;
function library() {
  loading ??= new Promise((done, fail) => {
    const script = document.createElement("script");
    script.src = "vendor/uplot.js";
    script.onload = () => done(globalThis.uPlot);
    script.onerror = () => fail(new Error("vendor/uplot.js is missing"));
    document.head.append(script);
  });
  return loading;
}

// colour returns what a custom property of style.css is now, as a canvas takes it.
function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

const FONT = "12px system-ui";
const SHORTEST = 60; // seconds that an axis of time has at least
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400]; // between two marks

// pen measures labels.
const pen = document.createElement("canvas").getContext("2d");

// wide returns how far apart marks must be that have labels such as these.
function wide(...labels) {
  pen.font = FONT;
  return Math.ceil(Math.max(...labels.map((l) => pen.measureText(l).width))) + 16;
}

// across is the axis of x, whose labels do not touch: the marks are as far apart as the widest label needs.
function across({ time, xFormat }) {
  if (time) return { incrs: SECONDS, space: (u, axis, low, high) => wide(tick(low * 1000, true), tick(high * 1000, true)), values: (u, at, axis, space, step) => at.map((s) => tick(s * 1000, step % 60 !== 0)) };
  return xFormat && { space: (u, axis, low, high) => wide(xFormat(low), xFormat(high)), values: (u, at) => at.map(xFormat) };
}

// lately is the range of an axis of time: at least a minute up to the newest moment, or to now if there is none.
// uPlot's own range of one moment would be a day.
function lately(u) {
  const xs = u.data[0];
  const end = xs.at(-1) ?? Date.now() / 1000;
  return [Math.min(xs[0] ?? end, end - SHORTEST), end];
}

// Plot shows series over x: data is [xs, ys, …]; series, [{ label, colour }]; time, whether x is seconds.
export function Plot({ data, series, time = false, label, format, xFormat }) {
  const box = useRef();
  const plot = useRef(null);
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined; // gone before it was shown
    let gone = false;
    let watch;
    library().then((uPlot) => {
      if (gone) return;
      const axis = { stroke: colour("--text-2"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: FONT };
      plot.current = new uPlot({
        width: element.clientWidth, height: 220, legend: { show: series.length > 1 }, cursor: { drag: { x: false, y: false } },
        scales: { x: { time, range: time ? lately : undefined }, y: { range: (u, low, high) => [0, (high || 1) * 1.1] } },
        axes: [{ ...axis, size: 32, ...across({ time, xFormat }) }, { ...axis, size: 64, values: format && ((u, vs) => vs.map(format)) }],
        series: [{}, ...series.map((s) => ({ label: s.label, stroke: colour(s.colour ?? "--accent"), width: 2, points: { show: false }, fill: s.fill && `color-mix(in srgb, ${colour(s.colour ?? "--accent")} 12%, transparent)`, dash: s.dash }))],
      }, latest.current, element);
      watch = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: 220 }));
      watch.observe(element);
    });
    return () => {
      gone = true;
      watch?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [series.length, time]);
  useEffect(() => { plot.current?.setData(data); }, [data]);
  return html`<div class="plot" ref=${box} role="img" aria-label=${label}></div>`;
}
