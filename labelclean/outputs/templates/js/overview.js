// The overview: matrices, noise by class, distributions, training, signals, comparison with truth.
function part(title, note, ...children) {
  return el("section", { class: "part" + (HALF.has(title) ? " half" : "") }, el("h2", null, title), note ? el("p", { class: "note" }, note) : null, ...children);
}

// Parts that are narrow enough to stand side by side.
const HALF = new Set(Object.keys(data.quality).length && data.class_noise.length ? ["Noise by class", "How good each signal is on this data"] : []);
if (data.classes.length <= 12) HALF.add("Given and suggested labels").add("How true labels became given labels");

function drawOverview(pick) {
  const parts = [matrixPart(pick), transitionPart(), classPart(pick), qualityPart(), distributionPart(), stagePart(), curvePart(), truthPart()];
  byId("charts").append(...parts.filter(Boolean));
}

const few = (table) => (table.classes.length < data.classes.length
  ? ` Drawn are the ${table.classes.length} of ${counted(data.classes.length)} classes with the most beside the diagonal; the .csv beside this file holds all.` : "");

const besides = (matrix) => (matrix.classes.length > 20 ? "beside under" : "beside");

function matrixPart(pick) {
  const words = { title: "Given and suggested labels", rows: "given", columns: "suggested", hint: "Point at a cell to read it; click it to see its rows." };
  return part(words.title, "Counts of rows; colour is the share of the row, the diagonal in grey." + few(data.confusion),
    el("div", { class: besides(data.confusion) }, drawMatrix(data.confusion, words, pick),
      el("div", null, el("h3", null, "Most frequent"), pairList(data.confusion, words, pick))));
}

function transitionPart() {
  if (!data.transition) return null;
  const words = { title: "How true labels became given labels", rows: "true", columns: "given", hint: "Point at a cell to read it." };
  return part(words.title, "Estimated P(given label | true label); every row sums to 1." + few(data.transition),
    el("div", { class: besides(data.transition) }, drawMatrix(data.transition, words, null),
      el("div", null, el("h3", null, "Largest"), pairList(data.transition, words, null))));
}

function table(heads, lines) {
  return el("table", null, el("thead", null, el("tr", null, heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", null, lines));
}

const FIRST_CLASSES = 20;

function classPart(pick) {
  if (!data.class_noise.length) return null;
  const top = Math.max(0.02, ...data.class_noise.map((entry) => Math.min(1, entry.interval[1])));
  const lines = data.class_noise.map((entry, at) => el("tr", { class: at >= FIRST_CLASSES ? "later" : null },
    el("th", { scope: "row" }, el("button", { type: "button", class: "plain", onclick: () => pick(entry.label, null) }, named(entry.label))),
    el("td", { class: "number" }, counted(entry.rows)), el("td", { class: "number" }, percent(entry.rate)),
    el("td", { class: "number quiet" }, `${percent(entry.interval[0])} to ${percent(entry.interval[1])}`),
    el("td", null, barOf(entry.rate, entry.interval, top))));
  const box = el("div", { class: "folded" }, scrolling("Noise by class", table(["label", "rows", "look wrong", "90 % interval", "share, up to " + percent(top)], lines)));
  if (lines.length > FIRST_CLASSES) {
    const button = el("button", { type: "button", onclick: () => { box.classList.remove("folded"); button.remove(); } }, `Show all ${counted(lines.length)}`);
    box.append(button);
  }
  return part("Noise by class", "Estimated share of wrong labels among the rows that carry a label.", box);
}

function distributionPart() {
  if (!data.by_action.length) return null;
  const rows = [el("div", { class: "panels" }, data.by_action.map(histogramChart))];
  if (data.by_truth.length) rows.push(el("h3", null, "By truth"), el("div", { class: "panels" }, data.by_truth.map(histogramChart)));
  return part("Distributions", "Share of each group's rows by value; groups are what was decided" + (data.by_truth.length ? ", then whether the label is right." : "."), ...rows);
}

function stagePart() {
  if (!data.stages.length) return null;
  return part("Attention τ during training", "NAL's weight of the given label early, half-way and at the end: the weight of wrong labels should fall behind.",
    el("div", { class: "panels" }, data.stages.map(histogramChart)));
}

function curvePart() {
  if (!data.curves.length) return null;
  return part("Training", "Measured during each epoch, on the labels as given.", el("div", { class: "panels" }, data.curves.map(lineChart)));
}

function qualityPart() {
  const entries = Object.entries(data.quality).sort((a, b) => b[1].ap - a[1].ap);
  if (!entries.length) return null;
  const lines = entries.map(([name, values]) => el("tr", null, el("th", { scope: "row" }, name.replaceAll("_", " ")),
    el("td", { class: "number" }, values.auroc.toFixed(3)), el("td", null, barOf(values.auroc, null, 1)),
    el("td", { class: "number" }, values.ap.toFixed(3)), el("td", null, barOf(values.ap, null, 1))));
  return part("How good each signal is on this data", "Measured on errors planted for this purpose in a copy of the labels.",
    scrolling("Signals", table(["signal", "AUROC", "from 0 to 1", "average precision", "from 0 to 1"], lines)));
}

const TRUTH_WORDS = {
  noise_rate: "labels wrong in truth", precision: "of the flagged are wrong", recall: "of the wrong are flagged",
  relabelled_right: "of the automatic relabels are right", label_accuracy_given: "of the labels right before",
  label_accuracy_corrected: "right after automatic relabels", label_accuracy_flagged: "right if every suggestion on a flagged row is taken",
};

function truthPart() {
  if (!data.truth) return null;
  const numbers = Object.entries(TRUTH_WORDS).filter(([name]) => typeof data.truth[name] === "number")
    .map(([name, words]) => el("li", null, el("b", null, percent(data.truth[name])), words));
  if (typeof data.truth.ap === "number") numbers.push(el("li", null, el("b", null, data.truth.ap.toFixed(3)), "average precision of p_error"));
  return part("Compared with the truth", null, el("p", { class: "note" }, "True labels from column ", named(String(data.truth.column)), `, known for ${counted(data.truth.rows)} rows; nothing was learned from them.`),
    el("ul", { class: "numbers small" }, numbers));
}
