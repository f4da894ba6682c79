// A square matrix as SVG: shades by share of the row, the diagonal in a quiet tone of its own.
function cellSize(count) {
  if (count <= 6) return 54;
  if (count <= 12) return 40;
  if (count <= 20) return 30;
  if (count <= 40) return 20;
  return count <= 60 ? 15 : 11;
}

function cellText(value, counts) {
  if (!counts) return value.toFixed(2).replace(/^0/, "");
  if (value < 10000) return String(value);
  return value < 1e6 ? Math.round(value / 1000) + "k" : (value / 1e6).toFixed(1) + "M";
}

function drawMatrix(table, words, pick) {
  const names = table.classes.map((at) => data.classes[at]);
  const size = cellSize(names.length);
  const font = size >= 20 ? 12 : Math.min(10.5, size - 1.2);
  const longest = Math.max(...names.map((name) => Math.min(18, Array.from(name).length)));
  const margin = Math.ceil(longest * font * 0.6) + 14;
  const side = names.length * size;
  const turned = names.length > 12 || longest > 4;
  const angle = size >= 20 ? 50 : 72;
  const top = turned ? Math.ceil(margin * (angle > 60 ? 0.95 : 0.8)) : 24;
  const label = `${words.title}: rows are ${words.rows} labels, columns ${words.columns} labels`;
  const wide = margin + side + (turned ? margin * Math.cos((angle * Math.PI) / 180) : 12) + 16, high = top + side + 24;
  const picture = svg("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, class: "matrix", role: "img", "aria-label": label });
  const body = svg("g", { transform: `translate(${margin + 16},${top + 20})` });
  names.forEach((name, at) => {
    const text = shortened(name, 18);
    const middle = at * size + size / 2;
    body.append(svg("text", { x: -6, y: middle + font * 0.35, class: "axis", "font-size": font, "text-anchor": "end" }, svg("title", null, name), text));
    const turn = turned ? { transform: `translate(${middle + font * 0.3},-6) rotate(-${angle})` } : { x: middle, y: -7, "text-anchor": "middle" };
    body.append(svg("text", { ...turn, class: "axis", "font-size": font }, svg("title", null, name), text));
  });
  body.append(svg("rect", { x: 0, y: 0, width: side, height: side, class: "ground" }));
  table.cells.forEach(([row, column, value], at) => {
    const share = value / (table.totals[row] || 1);
    const strength = row === column ? 0.1 + 0.25 * share : 0.08 + 0.92 * Math.sqrt(share);
    const cell = svg("rect", { x: column * size + 0.5, y: row * size + 0.5, width: size - 1, height: size - 1, "data-at": at,
      class: row === column ? "same" : "other", "fill-opacity": strength.toFixed(3) });
    body.append(cell);
    if (size >= 30) {
      const ink = row !== column && strength > 0.62 ? "ink strong" : "ink";
      body.append(svg("text", { x: column * size + size / 2, y: row * size + size / 2 + 4, class: ink, "text-anchor": "middle",
        "font-size": size >= 40 ? 12 : 10.5 }, cellText(value, table.counts)));
    }
  });
  picture.append(
    svg("text", { x: margin + 16 + side / 2, y: 12, class: "axis title", "text-anchor": "middle" }, words.columns + " label →"),
    svg("text", { transform: `translate(11,${top + 20 + side / 2}) rotate(-90)`, class: "axis title", "text-anchor": "middle" }, "← " + words.rows + " label"),
    body,
  );
  const readout = el("p", { class: "readout" }, words.hint);
  const under = (event) => { const at = event.target.getAttribute?.("data-at"); return at === null || at === undefined ? null : table.cells[at]; };
  picture.addEventListener("pointermove", (event) => { const cell = under(event); if (cell) readout.replaceChildren(...pairWords(table, cell, words)); });
  if (pick) picture.addEventListener("click", (event) => { const cell = under(event); if (cell) pick(names[cell[0]], names[cell[1]]); });
  return el("div", null, scrolling(label, picture), readout);
}

function pairWords(table, [row, column, value], words) {
  const [from, to] = [row, column].map((at) => named(data.classes[table.classes[at]]));
  const share = percent(value / (table.totals[row] || 1));
  return [words.rows + " ", from, ", " + words.columns + " ", to, table.counts ? `: ${counted(value)} rows, ${share} of the row` : `: ${share}`];
}

// The most frequent confusions in words: the way to the same numbers without seeing the drawing.
function pairList(table, words, pick) {
  const pairs = table.cells.filter(([row, column]) => row !== column).sort((a, b) => b[2] - a[2]).slice(0, 8);
  if (!pairs.length) return el("p", { class: "quiet" }, "No label stands beside another.");
  const top = pairs[0][2];
  return el("ol", { class: "pairs" }, pairs.map((cell) => {
    const [from, to] = [cell[0], cell[1]].map((at) => data.classes[table.classes[at]]);
    const inside = [named(shortened(from, 40)), " → ", named(shortened(to, 40))];
    const value = table.counts ? counted(cell[2]) : percent(cell[2]);
    return el("li", null, pick ? el("button", { type: "button", class: "plain", onclick: () => pick(from, to) }, ...inside) : el("span", null, ...inside),
      el("span", { class: "value" }, value), barOf(cell[2], null, top));
  }));
}
