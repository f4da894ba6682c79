// The selected row: its picture, both labels, the signals, the neighbours, and the ways to decide.
const SIGNAL_WORDS = [
  ["p_error", "given label is wrong"], ["p_given", "p(y|x) of the given label"], ["p_suggested", "suggested label"],
  ["attention", "attention τ"], ["target_given", "soft target q of the given label"], ["neighbour_agreement", "neighbours agree"],
  ["p_outlier", "shows none of the classes"], ["ambiguity", "shared by two classes"],
];
const QUICK = 10;

// The classes a number key chooses: all if there are few, else the likely ones of this row.
function quickClasses(row) {
  let names = data.classes;
  if (names.length > QUICK) {
    const likely = [row.suggested, row.given, ...row.neighbours.map((near) => near.label)];
    names = [...new Set(likely)].slice(0, QUICK);
  } else if (names.every((name) => /^[0-9]$/.test(name))) {
    return names.map((name) => [name, name]);
  }
  return names.map((name, at) => [String((at + 1) % 10), name]);
}

function drawDetail(row, decide) {
  const box = byId("detail");
  if (!row) {
    box.replaceChildren(el("p", { class: "quiet" }, "No row is selected."));
    return;
  }
  const words = `row ${row.row}, given label ${row.given}`;
  const whole = row.full || row.picture;
  const picture = el("div", { class: "large" }, pictureOf(row.picture, words, "whole"));
  if (whole) picture.append(el("button", { type: "button", class: "plain", onclick: () => openFull(row) }, row.full ? "Whole picture " : "Enlarge ", el("kbd", null, "o")));
  box.replaceChildren(
    el("div", { class: "head" }, el("b", null, `Row ${row.row}`), el("span", { class: "quiet" }, `rank ${counted(row.rank)}`), el("span", { class: "action k-" + row.action }, row.action), decisionWords(row)),
    el("div", { class: "look" }, picture, el("div", { class: "facts" }, labelsOf(row), el("p", { class: "reason" }, ...isolated(row.reason, row.suggested)))),
    copiesOf(row) || "",
    neighboursOf(row) || "",
    row.action === "unreadable" ? el("p", { class: "quiet" }, "This picture cannot be read; there is nothing to decide.") : decisionsOf(row, decide),
    signalsOf(row),
    el("dl", { class: "origin" }, origin("path", row.path), row.sample_id === String(row.row) ? null : origin("sample id", row.sample_id)),
  );
}

// A text in which a name occurs, the name kept to itself.
function isolated(text, name) {
  if (!name) return [text];
  return text.split(name).flatMap((piece, at) => (at ? [named(name), piece] : [piece]));
}

const origin = (name, text) => el("div", null, el("dt", null, name), el("dd", null, named(text), hiddenMarks(text)));

function labelsOf(row) {
  const line = (name, label, share) => el("div", null, el("dt", null, name), el("dd", null, el("b", null, named(label)), share === null ? null : el("span", { class: "quiet" }, " " + percent(share)), hiddenMarks(label)));
  return el("dl", { class: "labels" }, line("given", row.given, row.p_error === null ? null : 1 - row.p_error), row.suggested === row.given ? null : line("suggested", row.suggested, row.p_suggested));
}

function signalsOf(row) {
  const lines = SIGNAL_WORDS.filter(([name]) => row[name] !== null && row[name] !== undefined && !(name === "p_suggested" && row.suggested === row.given))
    .map(([name, words]) => el("tr", null, el("th", { scope: "row" }, words), el("td", { class: "number" }, percent(row[name])), el("td", null, barOf(row[name], null, 1))));
  if (row.margin !== null && row.margin !== undefined) lines.push(el("tr", null, el("th", { scope: "row" }, "margin"), el("td", { class: "number" }, row.margin.toFixed(2)), el("td")));
  return lines.length ? el("table", { class: "signals" }, el("tbody", null, lines)) : "";
}

// The other rows that show the same picture, beside it.
function copiesOf(row) {
  if (!row.copies.length) return null;
  return el("div", { class: "near copies" }, el("h3", null, "The same picture"), el("ul", null, row.copies.map((other) => el("li", { class: other.label === row.given ? "as-given" : "as-other" },
    other.picture ? pictureOf(other.picture, `row ${other.row}`) : el("span", { class: "nopicture" }, "no picture"), named(other.label), el("span", { class: "quiet" }, `row ${other.row}` + (other.split ? `, ${other.split}` : ""))))));
}

function neighboursOf(row) {
  if (!row.neighbours.length) return null;
  const kindOf = (label) => (label === row.given ? "as-given" : label === row.suggested ? "as-suggested" : "");
  return el("div", { class: "near" }, el("h3", null, "Nearest rows and their given labels"), el("ul", null, row.neighbours.map((near) => el("li", { class: kindOf(near.label) },
    near.picture ? pictureOf(near.picture, `row ${near.row}`) : el("span", { class: "nopicture" }, `row ${near.row}`), named(near.label)))));
}

function decisionsOf(row, decide) {
  const button = (key, words, decision, label, kind) => el("button", { type: "button", class: kind, "data-decision": decision, onclick: () => decide(decision, label) }, el("kbd", null, key), el("span", null, ...words));
  const ways = [button("c", ["Confirm ", named(shortened(row.given, 30))], "confirm", null, "confirm")];
  if (row.suggested !== row.given) ways.push(button("a", ["Accept ", named(shortened(row.suggested, 30))], "relabel", row.suggested, "accept"));
  ways.push(button("d", ["Drop"], "drop", null, "side"), button("u", ["Unsure"], "unsure", null, "side"), button("n", ["None of these"], "none_of_these", null, "side"));
  const quick = quickClasses(row).map(([key, name]) => el("button", { type: "button", class: "chip", "aria-label": "class " + name, onclick: () => chooseClass(row, name, decide) }, el("kbd", null, key), key === name ? null : named(shortened(name, 24))));
  const input = el("input", { id: "class-choice", list: "class-names", autocomplete: "off", placeholder: "type its name" });
  const form = el("form", { class: "choose" }, el("label", { for: "class-choice" }, "Another class ", el("kbd", null, "l")), input, el("button", null, "Set"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const name = likelyClass(input.value);
    if (name === null) say("No class has this name.");
    else { input.blur(); chooseClass(row, name, decide); }
  });
  return el("div", { class: "decide" }, el("div", { class: "ways" }, ways), el("div", { class: "quick", role: "group", "aria-label": "Classes by number" }, quick), form);
}

// The class that was typed: its name, or the only one that begins so.
function likelyClass(text) {
  if (data.classes.includes(text)) return text;
  const begin = data.classes.filter((name) => text && name.toLowerCase().startsWith(text.toLowerCase()));
  return begin.length === 1 ? begin[0] : null;
}

const chooseClass = (row, name, decide) => (name === row.given ? decide("confirm", null) : decide("relabel", name));

function openFull(row) {
  const source = row.full || row.picture;
  if (!source) return;
  const picture = byId("full").querySelector("img");
  picture.onload = () => picture.classList.toggle("tiny", picture.naturalWidth <= 40);
  picture.src = source;
  picture.alt = `row ${row.row}`;
  byId("full").showModal();
}
