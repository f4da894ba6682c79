// Histograms and curves as SVG; colours come from the style sheet, by class.
const HUES = {
  keep: "keep", kept: "keep", "label right": "keep", "given label": "keep", loss: "plain",
  relabel: "relabel", flagged: "relabel", "true label": "relabel",
  review: "review", drop: "drop", "label wrong": "drop",
};
const WIDE = 360, HIGH = 190, LEFT = 40, RIGHT = 8, TOP = 8, BOTTOM = 28;
const across = (share) => LEFT + share * (WIDE - LEFT - RIGHT);
const upwards = (share) => HIGH - BOTTOM - share * (HIGH - BOTTOM - TOP);

function ticks(low, high) {
  const rough = (high - low) / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((by) => by * power).find((size) => size >= rough);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) found.push(at);
  return found;
}

function frame(title, low, high, format, xTicks) {
  const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "chart", role: "img", "aria-label": title });
  for (const value of ticks(low, high)) {
    const y = upwards((value - low) / (high - low));
    picture.append(
      svg("line", { x1: LEFT, x2: WIDE - RIGHT, y1: y, y2: y, class: "grid" }),
      svg("text", { x: LEFT - 5, y: y + 3.5, class: "tick", "text-anchor": "end" }, format(value)),
    );
  }
  for (const [share, text] of xTicks) {
    picture.append(svg("text", { x: across(share), y: HIGH - BOTTOM + 14, class: "tick", "text-anchor": "middle" }, text));
  }
  return picture;
}

function legend(series) {
  return el("ul", { class: "legend" }, series.map((line) => el("li", { class: "h-" + (HUES[line.name] || "plain") },
    el("i", { "aria-hidden": "true" }), line.name + (line.count === undefined ? "" : " (" + counted(line.count) + ")"))));
}

function figure(chart, picture) {
  return el("figure", { class: "panel" }, el("figcaption", null, chart.title), legend(chart.series), picture);
}

const shareText = (value) => Math.round(100 * value) + " %";

// Shares of each group's rows by value from 0 to 1, as outlines.
function histogramChart(chart) {
  const high = Math.max(0.05, ...chart.series.flatMap((line) => line.values));
  const xTicks = [0, 0.25, 0.5, 0.75, 1].map((value) => [value, String(value)]);
  const words = chart.series.map((line) => `${line.name}: mean ${meanOf(line).toFixed(2)}`).join(", ");
  const picture = frame(`Distribution of ${chart.title}; ${words}`, 0, high, shareText, xTicks);
  for (const line of chart.series) {
    const bins = line.values.length;
    let path = `M${across(0)} ${upwards(0)}`;
    line.values.forEach((value, at) => {
      const y = upwards(value / high);
      path += `V${y.toFixed(1)}H${across((at + 1) / bins).toFixed(1)}`;
    });
    path += `V${upwards(0)}`;
    picture.append(svg("path", { d: path, class: "area h-" + (HUES[line.name] || "plain") }));
  }
  return figure(chart, picture);
}

const meanOf = (line) => line.values.reduce((sum, share, at) => sum + share * (at + 0.5), 0) / line.values.length;

function lineChart(chart) {
  const values = chart.series.flatMap((line) => line.values).filter((value) => value !== null);
  const isShare = Math.min(...values) >= 0 && Math.max(...values) <= 1 && chart.series[0].name !== "loss";
  const low = isShare ? 0 : Math.min(0, ...values);
  const high = isShare ? 1 : Math.max(...values, low + 1e-9) * 1.05;
  const last = chart.length - 1;
  const place = (epoch) => (last ? epoch / last : 0.5);
  const shown = [...new Set([1, ...ticks(1, chart.length).map(Math.round)])].map((epoch) => epoch - 1).filter((epoch, at, all) => !at || epoch - all[0] > last / 12);
  const format = isShare ? shareText : (value) => Number(value.toPrecision(3)).toString();
  const ends = chart.series.map((line) => `${line.name} ends at ${format(line.values[last] ?? 0)}`).join(", ");
  const picture = frame(`${chart.title} by epoch; ${ends}`, low, high, format, shown.map((epoch) => [place(epoch), String(epoch + 1)]));
  for (const line of chart.series) {
    const points = line.values.map((value, epoch) => (value === null ? null : [across(place(epoch)), upwards((value - low) / (high - low))])).filter(Boolean);
    const hue = "h-" + (HUES[line.name] || "plain");
    picture.append(svg("polyline", { points: points.map((point) => point.map((n) => n.toFixed(1)).join(",")).join(" "), class: "line " + hue }));
    if (points.length < 40) picture.append(...points.map(([x, y]) => svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: 2.2, class: "dot " + hue })));
  }
  picture.append(svg("text", { x: WIDE - RIGHT, y: HIGH - 2, class: "tick", "text-anchor": "end" }, "epoch"));
  return figure(chart, picture);
}

// A bar from 0 to 1 with a whisker for its interval.
function barOf(value, interval, top) {
  const scale = (share) => Math.min(1, share / top) * 160;
  const picture = svg("svg", { viewBox: "0 0 162 14", class: "bar", "aria-hidden": "true" });
  picture.append(svg("rect", { x: 0, y: 2, width: Math.max(0.5, scale(value)), height: 10, rx: 1.5, class: "barfill" }));
  if (interval) {
    const [low, high] = interval.map(scale);
    picture.append(svg("path", { d: `M${low} 7H${high}M${low} 4V10M${high} 4V10`, class: "whisker" }));
  }
  return picture;
}
